// Draws a run's metrics (or several runs') as small multiples, and updates them while a run is active.
// The page gives {live, groups, fixed, runs: [{name, url}]} as JSON; each address answers with columns above a step.
// Groups of the answers are drawn, too, unless those of the page are fixed. `bundles` are runs of several seeds.
(() => {
  "use strict";

  const source = document.getElementById("curves-data");
  const place = document.getElementById("curves");
  const note = document.getElementById("curves-note");
  if (!source || !place || typeof uPlot === "undefined") return;
  const page = JSON.parse(source.textContent);
  const runs = page.runs.map((run) => ({ ...run, name: visible(run.name), steps: [], series: new Map(), attempts: [], phases: [], over: !page.live }));
  const seeds = (page.bundles || []).some((bundle) => bundle.runs.length > 1) ? page.bundles : null;
  const plots = new Map();
  const PERIOD = 3000;
  const EMPTY = note.textContent; // what the page says where there is nothing to draw
  let zoom = null;

  const choices = chartChoices(page, { redraw: draw, rebuild });
  const averaged = () => seeds !== null && choices.state.mean;
  const lineNames = () => (averaged() ? seeds.map((bundle) => visible(bundle.name)) : runs.map((run) => run.name));

  // Every column of a chart: the steps, and for each line its values and smoothed values, or mean, low and high.
  function table(name) {
    const { smoothing } = choices.state;
    const [steps, ...columns] = runs.length === 1
      ? [runs[0].steps, runs[0].series.get(name) || runs[0].steps.map(() => null)]
      : uPlot.join(runs.map((run) => [run.steps, run.series.get(name) || run.steps.map(() => null)]));
    const smooth = columns.map((column) => series.smoothed(column, smoothing));
    let data = [steps, ...columns, ...(smoothing ? smooth : columns.map((column) => column.map(() => null)))];
    let counts = null;
    if (averaged()) {
      const means = seeds.map((bundle) => series.mean(bundle.runs.map((i) => smooth[i]), page.quantiles));
      data = [steps, ...means.flatMap(({ mean, low, high }) => [mean, low, high])];
      counts = means.map(({ n }) => n);
    }
    const drawable = (column) => (choices.has("log_y", name) ? column.map((value) => (value > 0 ? value : null)) : column);
    const kept = choices.has("log_x", name) ? steps.map((step) => step > 0) : null;
    const rows = (column) => (kept ? column.filter((_, i) => kept[i]) : column);
    return { data: [rows(steps), ...data.slice(1).map((column) => rows(drawable(column)))], counts: counts?.map(rows) };
  }

  function fill(entry, fit) {
    const { data, counts } = table(entry.name);
    entry.counts = counts;
    if (!averaged()) {
      runs.forEach((_, i) => { entry.plot.series[i + 1].alpha = choices.state.smoothing ? 0.3 : 1; });
    }
    entry.plot.setData(data, fit);
    const empty = data.slice(1).every((column) => column.every((value) => value == null));
    entry.note = empty && choices.has("log_y", entry.name) ? "No value above zero: a logarithmic axis shows none." : "";
    if (entry.plot.cursor.idx == null) entry.readout.textContent = entry.note;
  }

  // Dragging over one curve zooms all of them; a double click shows everything again.
  function follow(plot) {
    const { min, max } = plot.scales.x;
    if (zoom && zoom.min === min && zoom.max === max) return;
    zoom = { min, max };
    for (const other of plots.values()) if (other.plot !== plot) zoomed(other);
  }

  function zoomed(entry) {
    const low = entry.plot.scales.x.distr === 3 ? Math.max(zoom.min, entry.plot.data[0][0] ?? 1) : zoom.min;
    entry.plot.setScale("x", { min: Math.min(low, zoom.max), max: zoom.max });
  }

  function tell(entry) {
    const { plot, readout } = entry;
    const i = plot.cursor.idx;
    if (i == null) { readout.textContent = entry.note || ""; return; }
    const at = (k) => curvePlots.short(plot.data[k]?.[i]);
    const values = lineNames().map((name, k) => {
      const title = lineNames().length > 1 ? `${name}: ` : "";
      if (averaged()) return `${title}${at(3 * k + 1)} [${at(3 * k + 2)}, ${at(3 * k + 3)}], n = ${entry.counts[k][i]}`;
      return choices.state.smoothing ? `${title}${at(runs.length + k + 1)} (${at(k + 1)})` : `${title}${at(k + 1)}`;
    });
    readout.textContent = `step ${plot.data[0][i]} — ${values.join(" · ")}`;
  }

  function plotOf(entry) {
    entry.plot?.destroy();
    const logs = { x: choices.has("log_x", entry.name), y: choices.has("log_y", entry.name) };
    const lines = { names: lineNames(), averaged: averaged() };
    const marks = runs.length === 1 ? runs[0] : null;
    const hooks = { tell: () => tell(entry), zoom: follow };
    const { data, counts } = table(entry.name);
    entry.counts = counts;
    entry.plot = new uPlot(curvePlots.options(entry.canvas.clientWidth, logs, lines, marks, hooks), data, entry.canvas);
    entry.canvas.querySelector("canvas").setAttribute("aria-label", `${entry.title} by training step`);
    fill(entry, true);
    if (zoom) zoomed(entry);
  }

  function box(grid, metric) {
    const entry = { name: metric.name, title: visible(metric.title), grid, ...curvePlots.frame(metric) };
    grid.append(entry.figure);
    plotOf(entry);
    entry.canvas.addEventListener("dblclick", () => {
      zoom = null;
      for (const other of plots.values()) other.plot.setData(other.plot.data, true);
    });
    plots.set(metric.name, entry);
    if (choices.active) chartMenu(entry, choices, () => namesIn(grid));
  }

  const namesIn = (grid) => [...grid.children].filter((figure) => !figure.hidden).map((figure) => figure.dataset.metric);

  function rebuild(name) {
    for (const entry of plots.values()) if (!name || entry.name === name) plotOf(entry);
    list();
    draw();
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

  function merged() {
    const all = new Map();
    for (const group of [...page.groups, ...(page.fixed ? [] : runs.flatMap((run) => run.groups || []))]) {
      if (!all.has(group.title)) all.set(group.title, new Map());
      for (const metric of group.metrics) all.get(group.title).set(metric.name, metric);
    }
    return all;
  }

  function draw() {
    if (!runs.some((run) => run.steps.length)) return;
    for (const [title, metrics] of merged()) {
      const names = choices.sorted([...metrics.keys()]);
      const shown = names.filter((name) => !choices.has("hidden", name));
      const grid = section({ title });
      names.forEach((name) => choices.offer(metrics.get(name)));
      grid.parentElement.hidden = shown.length === 0;
      for (const name of names) if (plots.has(name)) plots.get(name).figure.hidden = !shown.includes(name);
      if (!grid.parentElement.open) continue;
      for (const name of shown) {
        if (plots.has(name)) fill(plots.get(name), zoom === null);
        else box(grid, metrics.get(name));
      }
      arrange(grid, names);
    }
  }

  // The charts of a group in their order, without moving any that is in its place: a moved element loses the focus.
  function arrange(grid, names) {
    const figures = names.filter((name) => plots.has(name)).map((name) => plots.get(name).figure);
    figures.forEach((figure, i) => { if (grid.children[i] !== figure) grid.insertBefore(figure, grid.children[i] || null); });
  }

  const legend = document.createElement("ul");
  legend.className = "run-keys";

  function list() {
    if (runs.length < 2) return;
    legend.replaceChildren(...lineNames().map((name, i) => curvePlots.key(i, name, averaged() ? null : runs[i].href)));
    place.before(legend);
  }

  async function ask(run) {
    const last = run.steps.length ? run.steps[run.steps.length - 1] : -1;
    const attempt = run.attempts.length ? run.attempts[run.attempts.length - 1].number : 0;
    const answer = await fetch(`${run.url}?since=${last}&attempt=${attempt}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    series.take(run, await answer.json());
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

  charts.follow(() => plots.values(), curvePlots.HEIGHT);
  list();
  refresh();
})();
