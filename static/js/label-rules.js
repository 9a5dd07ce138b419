// Labels of a conversation: what a stored list means, which new label is refused and why, and the history of changes.
//
// A label is {label, turn, start, end} of words, {label, turn} of a turn, or {label, turn, other_turn} of a relation between
// two turns. `start` and `end` are code points of the turn's text, end exclusive. Other members of a label are kept.
const labelRules = (() => {
  "use strict";
  const SHAPES = { circle: "●", square: "■", triangle: "▲", diamond: "◆", star: "★", cross: "✚", hexagon: "⬢", bar: "▬" };
  const COLOURS = 8;

  const kindOf = (label) => ("other_turn" in label ? "relation" : "start" in label || "end" in label ? "span" : "turn");
  const same = (a, b) => ["label", "turn", "start", "end", "other_turn"].every((member) => a[member] === b[member]);
  const inOrder = (spans) => [...spans].sort((a, b) => a.start - b.start || b.end - a.end);

  // Types by name; one that is not offered here gets a name to be shown by. A person can take its labels away, not add any.
  function typesOf(offered) {
    const types = new Map(offered.map((type) => [type.name, { ...type, shape: type.shape in SHAPES ? type.shape : "circle", colour: type.colour % COLOURS || 0 }]));
    return (name, kind) => types.get(name) ?? { name, title: `${name} (not offered here)`, kind, shape: "bar", unknown: true };
  }

  // Whether a label has a place among the turns, a Map of number to length in code points.
  function fits(label, turns) {
    if (label === null || typeof label !== "object" || typeof label.label !== "string" || !turns.has(label.turn)) return false;
    if (kindOf(label) === "relation") return turns.has(label.other_turn) && label.other_turn !== label.turn;
    if (kindOf(label) === "turn") return true;
    const { start, end } = label;
    return Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start < end && end <= turns.get(label.turn);
  }

  // Why a label cannot be among others, as {why, label}; null if it can. Only a span's own type forbids overlap with it.
  function refused(label, others, type) {
    const twin = others.find((other) => same(other, label));
    if (twin) return { why: "twin", label: twin };
    if (type.kind !== "span" || type.overlap) return null;
    const beneath = others.find((other) => other.label === label.label && other.turn === label.turn && other.start < label.end && label.start < other.end);
    return beneath ? { why: "overlap", label: beneath } : null;
  }

  // The lists of labels so far, each with the sentence of the change that made it.
  function history(list) {
    const states = [{ list, sentence: "" }];
    let at = 0;
    return {
      get list() { return states[at].list; },
      get canUndo() { return at > 0; },
      get canRedo() { return at < states.length - 1; },
      change(changed, sentence) { states.splice((at += 1), Infinity, { list: changed, sentence }); },
      undo() { return states[at--].sentence; },
      redo() { return states[++at].sentence; },
    };
  }

  // A lane for each span of a turn, so that those that overlap have their lines below one another.
  function lanes(spans) {
    const ends = [];
    const lane = new Map();
    for (const span of inOrder(spans)) {
      const free = ends.findIndex((end) => end <= span.start);
      const at = free < 0 ? ends.length : free;
      ends[at] = span.end;
      lane.set(span, at);
    }
    return lane;
  }

  return { SHAPES, kindOf, same, inOrder, typesOf, fits, refused, history, lanes };
})();
