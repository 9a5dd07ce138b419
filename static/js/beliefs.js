// Curves of probed seats' beliefs over a game: one small curve per seat, drawn from the table of numbers beside it.
(() => {
  "use strict";
  if (typeof uPlot === "undefined") return;
  const HEIGHT = 150;
  const SYNC = uPlot.sync("beliefs");
  let plots = [];

  const number = (cell) => (cell.dataset.value === "" ? null : Number(cell.dataset.value));

  // The columns of the table: step, right, guess.
  function columns(section) {
    const rows = [...section.querySelectorAll("tbody tr")].map((row) => [...row.cells].map(number));
    return [0, 1, 2].map((place) => rows.map((row) => row[place]));
  }

  // Marks the displayed step, if the page has a scrubber.
  function here(plot) {
    const scrub = document.getElementById("scrub");
    if (!scrub) return;
    const { ctx, bbox } = plot;
    const x = Math.round(plot.valToPos(Number(scrub.value), "x", true));
    ctx.save();
    ctx.strokeStyle = charts.style("--pico-muted-color");
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  function options(place, last) {
    const axis = { stroke: () => charts.style("--pico-muted-color"), grid: { stroke: () => charts.style("--parley-faint"), width: 1 } };
    const incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
    return {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: SYNC.key }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: [0, last] }, y: { range: [0, 1] } },
      axes: [{ ...axis, size: 26, incrs }, { ...axis, size: 40 }],
      series: [
        { label: "step" },
        { label: "right", width: 2, spanGaps: true, points: { show: true, size: 5 }, stroke: () => charts.style("--pico-primary") },
        { label: "guess", width: 1, spanGaps: true, points: { show: false }, dash: [4, 4], stroke: () => charts.style("--pico-muted-color") },
      ],
      hooks: { draw: [here] },
    };
  }

  function draw() {
    for (const { plot } of plots) plot.destroy();
    const sections = [...document.querySelectorAll(".belief:has(table)")];
    const charted = sections.map((section) => [section, columns(section)]);
    const steps = Number(document.getElementById("scrub")?.max || 0);
    const last = Math.max(1, steps, ...charted.flatMap(([, data]) => data[0]));
    plots = charted.map(([section, data]) => {
      const place = section.querySelector(".belief-curve");
      const plot = new uPlot(options(place, last), data, place);
      const title = section.querySelector("h4").textContent;
      place.querySelector("canvas").setAttribute("aria-label", `${title}: belief in the right answers by step; the numbers are below`);
      return { plot, canvas: place };
    });
  }

  charts.follow(() => plots, HEIGHT);
  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target.id === "replay") draw(); });
  draw();
})();
