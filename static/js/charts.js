// Shared by all curves: the page's colours, and updates when its width or colour scheme changes.
const charts = {
  style: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888",

  // `getPlots` returns {plot, canvas} for every plot; `canvas` is the element that the plot fills.
  follow(getPlots, height) {
    let resizing;
    window.addEventListener("resize", () => {
      window.clearTimeout(resizing);
      resizing = window.setTimeout(() => {
        for (const { plot, canvas } of getPlots()) if (canvas.clientWidth) plot.setSize({ width: canvas.clientWidth, height });
      }, 150);
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const { plot } of getPlots()) plot.redraw();
    });
  },
};
