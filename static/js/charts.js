// What all curves share: the page's colours, and that they follow its width and its light.
const charts = {
  style: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888",

  // `shown` gives {plot, canvas} of every plot there is, `canvas` being the element that it fills.
  follow(shown, height) {
    let resizing;
    window.addEventListener("resize", () => {
      window.clearTimeout(resizing);
      resizing = window.setTimeout(() => {
        for (const { plot, canvas } of shown()) if (canvas.clientWidth) plot.setSize({ width: canvas.clientWidth, height });
      }, 150);
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const { plot } of shown()) plot.redraw();
    });
  },
};
