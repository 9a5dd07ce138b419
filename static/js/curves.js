// Draws a run's metrics (or several runs') as small multiples, and updates them while a run is active.
// The page gives {live, groups, fixed, runs: [{name, url}]} as JSON; each address answers with columns above a step.
// Groups of the answers are drawn, too, unless those of the page are fixed.
(() => {
  "use strict";

  const source = document.getElementById("curves-data");
  const place = document.getElementById("curves");
  const note = document.getElementById("curves-note");
  if (!source || !place || typeof uPlot === "undefined") return;
  const page = JSON.parse(source.textContent);
  const runs = page.runs.map((run) => ({ ...run, name: visible(run.name), steps: [], series: new Map(), attempts: [], phases: [], over: !page.live }));
  const plots = new Map();
  const SYNC = uPlot.sync("curves");
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
  const HUES = ["--pico-primary", "--parley-bad", "--parley-good", "--parley-warn"];
  const HEIGHT = 165;
  const PERIOD = 3000;
  const EMPTY = note.textContent; // what the page says where there is nothing to draw
  const WHOLE = [1, 2, 5].flatMap((digit) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((size) => digit * size)).sort((a, b) => a - b); // steps are whole
  let zoom = null;

  const look = (i) => ({ stroke: () => charts.style(HUES[i % HUES.length]), dash: DASHES[Math.floor(i / HUES.length) % DASHES.length] });

  // Merges one answer of the server: drops the steps that it supersedes, then appends. Steps stay strictly increasing.
  function take(run, data) {
    const from = data.from;
    let keep = run.steps.length;
    while (keep > 0 && run.steps[keep - 1] > from) keep -= 1;
    run.steps.length = keep;
    for (const [name, values] of run.series) values.length = keep;
    for (const name of Object.keys(data.series)) {
      if (!run.series.has(name)) run.series.set(name, new Array(keep).fill(null));
    }
    run.steps.push(...data.steps);
    for (const [name, values] of run.series) {
      const fresh = data.series[name];
      for (let i = 0; i < data.steps.length; i += 1) values.push(fresh ? fresh[i] : null);
    }
    run.attempts = data.attempts;
    run.phases = data.phases;
    run.over = data.over;
    run.groups = data.groups;
  }

  // All runs on one step axis, null where a run has no such step.
  function table(name) {
    if (runs.length === 1) return [runs[0].steps, runs[0].series.get(name) || runs[0].steps.map(() => null)];
    const tables = runs.map((run) => [run.steps, run.series.get(name) || run.steps.map(() => null)]);
    return uPlot.join(tables);
  }

  function boundaries(plot) {
    if (runs.length !== 1) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = charts.style("--pico-muted-color");
    const lines = (starts, dash) => {
      ctx.setLineDash(dash);
      for (const { start } of starts.slice(1)) {
        const x = Math.round(plot.valToPos(start, "x", true));
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
    };
    lines(runs[0].attempts, [4, 4]);
    lines(runs[0].phases, []);
    ctx.restore();
  }

  // Dragging over one curve zooms all of them; a double click shows everything again.
  function follow(plot) {
    const { min, max } = plot.scales.x;
    if (zoom && zoom.min === min && zoom.max === max) return;
    zoom = { min, max };
    for (const other of plots.values()) if (other.plot !== plot) other.plot.setScale("x", zoom);
  }

  function short(value, more = 0) {
    if (value == null) return "—";
    const size = Math.abs(value);
    if (size >= 1000) return value.toFixed(more);
    return size > 0 && size < 0.001 ? value.toExponential(1 + more) : String(Number(value.toPrecision(4 + more)));
  }

  // The ticks of an axis, with as many digits as distinguish them.
  function tickTexts(ticks) {
    const shown = ticks.filter((tick) => tick != null);
    const distinct = (more) => new Set(shown.map((tick) => short(tick, more))).size === new Set(shown).size;
    const more = [0, 1, 2, 3, 4, 5, 6, 7].find(distinct) ?? 8;
    return ticks.map((tick) => (tick == null ? "" : short(tick, more)));
  }

  // As wide as the longest text of the axis; later rounds of uPlot's layout keep the width of the second.
  function axisSize(plot, texts, number, round) {
    const axis = plot.axes[number];
    if (round > 1) return axis._size;
    plot.ctx.font = axis.font[0];
    const widths = (texts ?? []).map((text) => plot.ctx.measureText(text).width / window.devicePixelRatio);
    return Math.max(52, Math.ceil(axis.ticks.size + axis.gap + Math.max(0, ...widths)));
  }

  // A curve without any height still has a scale that says how large its one value is.
  const around = (value) => (value === null ? [0, 1] : [Math.min(0, 2 * value), Math.max(0, 2 * value) || 1]);

  // Differences beyond the digits that an axis writes: uPlot finds no ticks between such values, and breaks.
  const isFlat = (low, high) => high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high));

  // A line needs two values: a single one is a dot.
  const alone = (plot, i) => plot.data[i].filter((value) => value != null).length === 1;

  function options(width, readout) {
    const axis = { stroke: () => charts.style("--pico-muted-color"), grid: { stroke: () => charts.style("--parley-faint"), width: 1 }, ticks: { width: 1, size: 4 } };
    const tell = (plot) => {
      const i = plot.cursor.idx;
      if (i == null) { readout.textContent = ""; return; }
      const values = plot.data.slice(1).map((column, n) => (runs.length > 1 ? `${runs[n].name}: ${short(column[i])}` : short(column[i])));
      readout.textContent = `step ${plot.data[0][i]} — ${values.join(" · ")}`;
    };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: SYNC.key }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => (isFlat(low, high) ? around(low) : uPlot.rangeNum(low, high, 0.1, true)) } },
      axes: [{ ...axis, size: 26, incrs: WHOLE }, { ...axis, size: axisSize, values: (_, ticks) => tickTexts(ticks) }],
      series: [{ label: "step" }, ...runs.map((run, i) => ({ label: run.name, width: 1.5, spanGaps: true, points: { show: alone }, ...look(i) }))],
      hooks: { draw: [boundaries], setCursor: [tell], setScale: [(plot, key) => { if (key === "x" && plot.cursor.event) follow(plot); }] },
    };
  }

  function box(grid, metric) {
    const figure = document.createElement("section");
    figure.className = "curve";
    const title = document.createElement("h4");
    title.textContent = visible(metric.title);
    const canvas = document.createElement("div");
    const readout = document.createElement("p");
    readout.className = "readout";
    figure.append(title, canvas, readout);
    if (metric.explanation) {
      const explanation = document.createElement("p");
      explanation.className = "explanation";
      explanation.textContent = metric.explanation;
      figure.append(explanation);
    }
    grid.append(figure);
    const plot = new uPlot(options(canvas.clientWidth, readout), table(metric.name), canvas);
    canvas.querySelector("canvas").setAttribute("aria-label", `${title.textContent} by training step`);
    canvas.addEventListener("dblclick", () => {
      zoom = null;
      for (const other of plots.values()) other.plot.setData(other.plot.data, true);
    });
    plots.set(metric.name, { plot, canvas });
  }

  function section(group) {
    const id = `curves-${group.title.toLowerCase()}`;
    let grid = document.getElementById(id);
    if (grid) return grid;
    const folded = document.createElement("details");
    folded.open = group.title !== "Other";
    const title = document.createElement("summary");
    title.textContent = group.title;
    grid = document.createElement("div");
    grid.id = id;
    grid.className = "curve-grid";
    folded.append(title, grid);
    folded.addEventListener("toggle", draw);
    place.append(folded);
    return grid;
  }

  function draw() {
    const merged = new Map();
    for (const group of [...page.groups, ...(page.fixed ? [] : runs.flatMap((run) => run.groups || []))]) {
      if (!merged.has(group.title)) merged.set(group.title, new Map());
      for (const metric of group.metrics) merged.get(group.title).set(metric.name, metric);
    }
    if (!runs.some((run) => run.steps.length)) return;
    for (const [title, metrics] of merged) {
      const grid = section({ title });
      if (!grid.parentElement.open) continue;
      for (const metric of metrics.values()) {
        const existing = plots.get(metric.name);
        if (!existing) box(grid, metric);
        else existing.plot.setData(table(metric.name), zoom === null);
      }
    }
  }

  function keys() {
    if (runs.length < 2) return;
    const list = document.createElement("ul");
    list.className = "run-keys";
    runs.forEach((run, i) => {
      const item = document.createElement("li");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [k, v] of Object.entries({ x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": 2 })) line.setAttribute(k, v);
      line.setAttribute("stroke", charts.style(HUES[i % HUES.length]));
      line.setAttribute("stroke-dasharray", look(i).dash.join(" "));
      svg.append(line);
      svg.setAttribute("aria-hidden", "true");
      const link = document.createElement("a");
      link.href = run.href;
      link.textContent = run.name;
      item.append(svg, " ", link);
      list.append(item);
    });
    place.before(list);
  }

  async function ask(run) {
    const last = run.steps.length ? run.steps[run.steps.length - 1] : -1;
    const attempt = run.attempts.length ? run.attempts[run.attempts.length - 1].number : 0;
    const answer = await fetch(`${run.url}?since=${last}&attempt=${attempt}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    take(run, await answer.json());
  }

  function say(missing) {
    const names = missing.map((run) => run.name).join(", ");
    note.textContent = missing.length ? `The numbers of ${names} could not be loaded; they are requested again.` : EMPTY;
    note.hidden = missing.length === 0 && runs.some((run) => run.steps.length);
  }

  async function refresh() {
    const answers = await Promise.allSettled(runs.map(ask));
    const missing = runs.filter((_, i) => answers[i].status === "rejected");
    document.getElementById("run-header")?.classList.toggle("stale", missing.length > 0);
    say(missing);
    draw();
    const alive = page.live && runs.some((run) => !run.over);
    if (alive || missing.length) window.setTimeout(refresh, alive && !document.hidden ? PERIOD : 5 * PERIOD);
  }

  charts.follow(() => plots.values(), HEIGHT);
  keys();
  refresh();
})();
