// A person's choices of charts: smoothing, mean of seeds, order, absence and logarithmic axes. Stored on the server.
// `handlers`: redraw() after another choice or order of charts, rebuild(name) where axes or lines change.
const chartChoices = (page, handlers) => {
  "use strict";

  const { redraw, rebuild } = handlers;
  const PAUSE = 400; // milliseconds without a further change, until the choices are stored
  const tools = document.getElementById("curve-tools");
  const list = document.getElementById("chart-list");
  const problem = document.getElementById("choices-problem");
  const slider = document.getElementById("smoothing");
  const output = document.querySelector('output[for="smoothing"]');
  const meanBox = document.getElementById("mean-of-seeds");
  const DEFAULTS = { smoothing: 0, mean: true, order: [], hidden: [], log_x: [], log_y: [] };
  const state = { ...DEFAULTS, ...(page.choices || {}) };
  const titles = new Map(); // of every metric that a chart shows or could show
  let waiting = null;

  async function store(text) {
    const headers = { ...JSON.parse(document.body.getAttribute("hx-headers")), "Content-Type": "application/x-www-form-urlencoded" };
    const answer = await fetch(page.save, { method: "POST", headers, body: new URLSearchParams({ charts: text }) }).catch(() => null);
    problem.textContent = answer?.ok ? "" : "The site did not store these choices; they hold on this page.";
  }

  function changed() {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => { waiting = null; store(JSON.stringify(state)); }, PAUSE);
  }

  const has = (kind, name) => state[kind].includes(name);
  const without = (kind, name) => state[kind].filter((other) => other !== name);

  function toggle(kind, name, on = !has(kind, name)) {
    state[kind] = on ? [...without(kind, name), name] : without(kind, name);
    changed();
    if (kind === "hidden") redraw();
    else rebuild(name);
  }

  // Metrics in the chosen order; those that were never moved keep their place behind the ones before them.
  function sorted(names) {
    const place = new Map(state.order.map((name, i) => [name, i]));
    const moved = names.filter((name) => place.has(name)).sort((a, b) => place.get(a) - place.get(b));
    return names.map((name) => (place.has(name) ? moved.shift() : name));
  }

  // Puts a metric before or behind another one of its group, whose present order is `names`.
  function move(name, names, at) {
    const others = names.filter((other) => other !== name);
    others.splice(Math.max(0, Math.min(others.length, at)), 0, name);
    state.order = [...state.order.filter((other) => !others.includes(other)), ...others];
    changed();
    redraw();
  }

  function offer(metric) {
    if (!list || titles.has(metric.name)) return;
    titles.set(metric.name, metric.title);
    const item = document.createElement("li");
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !has("hidden", metric.name);
    box.addEventListener("change", () => toggle("hidden", metric.name, !box.checked));
    label.append(box, visible(metric.title));
    label.dataset.metric = metric.name;
    item.append(label);
    list.append(item);
  }

  function show() {
    if (!tools) return;
    slider.value = state.smoothing;
    output.textContent = state.smoothing.toFixed(2);
    if (meanBox) meanBox.checked = state.mean;
    for (const label of list.querySelectorAll("label")) label.querySelector("input").checked = !has("hidden", label.dataset.metric);
  }

  if (tools) {
    slider.addEventListener("input", () => { state.smoothing = Number(slider.value); show(); changed(); redraw(); });
    meanBox?.addEventListener("change", () => { state.mean = meanBox.checked; changed(); rebuild(); });
    document.getElementById("charts-reset").addEventListener("click", () => {
      window.clearTimeout(waiting);
      Object.assign(state, DEFAULTS);
      show();
      store("");
      rebuild();
    });
    window.addEventListener("pagehide", () => { if (waiting !== null) store(JSON.stringify(state)); });
    show();
  }

  return { state, has, toggle, sorted, move, offer, show, active: Boolean(tools) };
};
