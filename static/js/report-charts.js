// Draws the charts of a report: a small plot for each metric, updated while one of its runs is active. In the editor it
// inserts numbers and charts of runs into the text.
(() => {
  "use strict";

  const PERIOD = 5000;
  const plots = [];

  function table(runs, name) {
    const columns = runs.map((run) => [run.steps, run.series.get(name) || run.steps.map(() => null)]);
    const joined = columns.length === 1 ? columns[0] : uPlot.join(columns);
    return [...joined, ...runs.map(() => joined[0].map(() => null))]; // nothing is smoothed
  }

  function box(place, runs, metric) {
    const entry = { name: metric.name, ...curvePlots.frame(metric) };
    place.append(entry.figure);
    const names = runs.map((run) => run.name);
    const tell = () => {
      const i = entry.plot.cursor.idx;
      const values = names.map((name, k) => `${name}: ${curvePlots.short(entry.plot.data[k + 1][i])}`);
      entry.readout.textContent = i == null ? "" : `step ${entry.plot.data[0][i]} — ${values.join(" · ")}`;
    };
    const options = curvePlots.options(entry.canvas.clientWidth, {}, { names, averaged: false }, null, { tell, zoom: () => {} });
    entry.plot = new uPlot(options, table(runs, metric.name), entry.canvas);
    entry.canvas.querySelector("canvas").setAttribute("aria-label", `${visible(metric.title)} by training step`);
    plots.push(entry);
    return entry;
  }

  function start(place) {
    const page = JSON.parse(place.dataset.chart);
    const runs = page.runs.map((run) => ({ ...run, name: visible(run.name), steps: [], series: new Map(), attempts: [], over: false }));
    let boxes = null;
    if (runs.length > 1) {
      const keys = Object.assign(document.createElement("ul"), { className: "run-keys" });
      keys.append(...runs.map((run, i) => curvePlots.key(i, run.name, null)));
      place.before(keys);
    }
    async function refresh() {
      if (!place.isConnected) return; // replaced by another preview
      const answers = await Promise.allSettled(runs.filter((run) => !run.over).map(async (run) => {
        const last = run.steps.at(-1) ?? -1;
        const attempt = run.attempts.at(-1)?.number ?? 0;
        const answer = await fetch(`${run.url}?since=${last}&attempt=${attempt}`, { headers: { Accept: "application/json" } });
        if (!answer.ok) throw new Error(String(answer.status));
        series.take(run, await answer.json());
      }));
      boxes ??= page.metrics.map((metric) => box(place, runs, metric));
      for (const entry of boxes) entry.plot.setData(table(runs, entry.name), true);
      place.classList.toggle("stale", answers.some(({ status }) => status === "rejected"));
      if (runs.some((run) => !run.over)) window.setTimeout(refresh, PERIOD);
    }
    refresh();
  }

  const begin = (root) => root.querySelectorAll(".report-chart:not([data-begun])").forEach((place) => {
    place.dataset.begun = "";
    start(place);
  });
  charts.follow(() => plots, curvePlots.HEIGHT);
  begin(document);
  document.addEventListener("htmx:afterSwap", () => begin(document));
})();

(() => {
  "use strict";
  const picker = document.getElementById("insert");
  if (!picker) return; // not the editor, or there is no run
  const area = document.getElementById("id_text");
  const [run, metric] = picker.querySelectorAll("select");

  function offerMetrics() {
    const chosen = metric.value;
    const metrics = JSON.parse(run.selectedOptions[0].dataset.metrics);
    metric.replaceChildren(...metrics.map(([name, title]) => new Option(visible(title), name, false, name === chosen)));
  }

  function chart(reference) { // a block of its own, with an empty line before it
    const before = area.value.slice(0, area.selectionStart);
    const gap = before === "" || before.endsWith("\n\n") ? "" : before.endsWith("\n") ? "\n" : "\n\n";
    return `${gap}\`\`\`chart\n${reference}\n\`\`\`\n\n`;
  }

  picker.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const reference = `run:${run.value} ${metric.value}`;
    const text = button.value === "chart" ? chart(reference) : `{{ ${reference} }}`;
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true })); // the preview follows
  });
  run.addEventListener("change", offerMetrics);
  offerMetrics();
  area.setSelectionRange(area.value.length, area.value.length); // the end, before anybody has put the cursor elsewhere
  picker.hidden = false;
})();
