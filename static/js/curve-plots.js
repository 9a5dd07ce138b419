// How one chart of curves looks: its frame, axes, lines, and the numbers beside them.
const curvePlots = (() => {
  "use strict";

  const SYNC = uPlot.sync("curves");
  // A line differs from its neighbours by its dashes, too: 20 lines have a look each.
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
  const HUES = ["--pico-primary", "--parley-line-2", "--parley-line-3", "--parley-line-4", "--parley-line-5"];
  const HEIGHT = 165;
  const LOG = 3; // uPlot's number of a logarithmic scale
  const WHOLE = [1, 2, 5].flatMap((digit) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((size) => digit * size)).sort((a, b) => a - b); // steps are whole

  const look = (i) => ({ stroke: () => charts.style(HUES[i % HUES.length]), dash: DASHES[i % DASHES.length] });

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
  const around = (value) => (value ? [Math.min(0, 2 * value), Math.max(0, 2 * value)] : [0, 1]);

  // Differences beyond the digits that an axis writes: uPlot finds no ticks between such values, and breaks.
  const isFlat = (low, high) => high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high));

  const linear = (_, low, high) => (isFlat(low, high) ? around(low) : uPlot.rangeNum(low, high, 0.1, true));

  function logarithmic(_, low, high) {
    if (low == null || low <= 0) return [1, 10];
    return isFlat(low, high) ? [low / 10, high * 10] : uPlot.rangeLog(low, high, 10, false);
  }

  // A line needs two values: a single one is a dot.
  const alone = (plot, i) => plot.data[i].filter((value) => value != null).length === 1;

  // Vertical lines where an attempt (dashed) or a phase of the run begins.
  function boundaries(plot, run) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = charts.style("--pico-muted-color");
    const lines = (starts, dash) => {
      ctx.setLineDash(dash);
      for (const { start } of starts.slice(1)) {
        const x = Math.round(plot.valToPos(start, "x", true));
        if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
    };
    lines(run.attempts, [4, 4]);
    lines(run.phases, []);
    ctx.restore();
  }

  const line = (label, i, rest = {}) => ({ label, width: 1.5, spanGaps: true, points: { show: alone }, ...look(i), ...rest });

  function lineSeries({ names, averaged }) {
    if (!averaged) return { series: [...names.map((name, i) => line(name, i)), ...names.map((name, i) => line(`${name}, smoothed`, i, { width: 2 }))] };
    const edge = { width: 0, points: { show: false } };
    const series = names.flatMap((name, i) => [line(name, i), line(`${name}, low`, i, edge), line(`${name}, high`, i, edge)]);
    const bands = names.map((_, i) => ({ series: [3 * i + 3, 3 * i + 2], fill: () => tint(HUES[i % HUES.length]) }));
    return { series, bands };
  }

  // A colour of the page, nearly transparent.
  const tint = (name) => `color-mix(in srgb, ${charts.style(name)} 18%, transparent)`;

  // `logs`: which axes are logarithmic; `marks`: the run whose attempts and phases are marked, if it is alone.
  function options(width, logs, lines, marks, hooks) {
    const axis = { stroke: () => charts.style("--pico-muted-color"), grid: { stroke: () => charts.style("--parley-faint"), width: 1 }, ticks: { width: 1, size: 4 } };
    const { series, bands } = lineSeries(lines);
    const x = logs.x ? { time: false, distr: LOG, range: (_, low, high) => (low > 0 && high > low ? [low, high] : logarithmic(_, low, high)) } : { time: false };
    const steps = { ...axis, size: 26, ...(logs.x ? { values: (_, ticks) => tickTexts(ticks) } : { incrs: WHOLE }) };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: SYNC.key }, drag: { x: true, y: false } },
      scales: { x, y: logs.y ? { distr: LOG, range: logarithmic } : { range: linear } },
      axes: [steps, { ...axis, size: axisSize, values: (_, ticks) => tickTexts(ticks) }],
      series: [{ label: "step" }, ...series],
      bands,
      hooks: {
        draw: marks ? [(plot) => boundaries(plot, marks)] : [],
        setCursor: [hooks.tell],
        setScale: [(plot, key) => { if (key === "x" && plot.cursor.event) hooks.zoom(plot); }],
      },
    };
  }

  function frame(metric) {
    const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
    const [figure, head, canvas, readout] = [make("section", "curve"), make("div", "curve-head"), make("div", ""), make("p", "readout")];
    head.append(make("h4", "", visible(metric.title)));
    figure.dataset.metric = metric.name;
    figure.append(head, canvas, readout);
    if (metric.explanation) figure.append(make("p", "explanation", metric.explanation));
    return { figure, head, canvas, readout };
  }

  // An entry of the list of lines above the charts.
  function key(i, name, href) {
    const item = document.createElement("li");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [k, v] of Object.entries({ x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": 2 })) stroke.setAttribute(k, v);
    stroke.setAttribute("stroke", charts.style(HUES[i % HUES.length]));
    stroke.setAttribute("stroke-dasharray", look(i).dash.join(" "));
    svg.append(stroke);
    svg.setAttribute("aria-hidden", "true");
    const text = document.createElement(href ? "a" : "span");
    if (href) text.href = href;
    text.textContent = name;
    item.append(svg, " ", text);
    return item;
  }

  return { HEIGHT, short, options, frame, key };
})();
