// Numbers of curves, without drawing: answers of the server merged, smoothing, means over several runs.
const series = (() => {
  "use strict";

  // Merges one answer of the server: drops the steps that it supersedes, then appends. Steps stay strictly increasing.
  function take(run, data) {
    const from = data.from;
    let keep = run.steps.length;
    while (keep > 0 && run.steps[keep - 1] > from) keep -= 1;
    run.steps.length = keep;
    for (const values of run.series.values()) values.length = keep;
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

  // Exponential moving average, corrected for its start at zero: the weights of all values so far sum to one.
  function smoothed(values, weight) {
    let [total, norm] = [0, 0];
    return values.map((value) => {
      if (value == null) return null;
      total = weight * total + value;
      norm = weight * norm + 1;
      return total / norm;
    });
  }

  // Mean of several columns with Student's t interval, row by row; `quantiles` begin with that of two values.
  // A column counts from its first value to its last. Where one that counts has no value, the row has none.
  function mean(columns, quantiles) {
    const spans = columns.map((column) => [column.findIndex((value) => value != null), column.findLastIndex((value) => value != null)]);
    const result = { mean: [], low: [], high: [], n: [] };
    const length = columns.length ? columns[0].length : 0;
    for (let i = 0; i < length; i += 1) {
      const values = columns.filter((_, k) => spans[k][0] !== -1 && spans[k][0] <= i && i <= spans[k][1]).map((column) => column[i]);
      const complete = values.length > 0 && values.every((value) => value != null);
      const n = complete ? values.length : 0;
      const middle = complete ? values.reduce((sum, value) => sum + value, 0) / n : null;
      const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
      const half = n > 1 ? quantiles[n - 2] * Math.sqrt(squares / (n - 1) / n) : null;
      result.mean.push(middle);
      result.low.push(half == null ? null : middle - half);
      result.high.push(half == null ? null : middle + half);
      result.n.push(n);
    }
    return result;
  }

  return { take, smoothed, mean };
})();
