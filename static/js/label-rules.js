// Labels of a conversation: what a stored list means, what each type is, and which label is refused and why.
//
// A label is {label, turn, start, end} of words, {label, turn} of a turn, or {label, turn, other_turn} of a relation between
// two turns; `value` is its value where its type has one, `suggestion` what it was accepted or corrected from. `start` and
// `end` are code points of the turn's text, end exclusive. Other members of a label are kept.
//
// A type's `mark` says what it marks: "span", "relation", "turn", or "detail": a value about the words or the relation that
// another type marks at the same place, as its `when` says: [the name of that type, its value or null for any].
const labelRules = (() => {
  "use strict";
  const SHAPES = { circle: "●", square: "■", triangle: "▲", diamond: "◆", star: "★", cross: "✚", hexagon: "⬢", bar: "▬" };
  const COLOURS = 8;
  const PLACE = ["turn", "start", "end", "other_turn"];

  const kindOf = (label) => ("other_turn" in label ? "relation" : "start" in label || "end" in label ? "span" : "turn");
  const samePlace = (a, b) => PLACE.every((member) => a[member] === b[member]);
  const same = (a, b) => a.label === b.label && samePlace(a, b);
  const placeOf = (label) => Object.fromEntries(PLACE.filter((member) => member in label).map((member) => [member, label[member]]));
  const inOrder = (spans) => [...spans].sort((a, b) => a.start - b.start || b.end - a.end);
  const markOf = ({ kind, about }) => (about === "turn" ? "turn" : ["span", "relation"].includes(kind) ? kind : "detail");

  // Types by name; one that is not offered here gets a name to be shown by. A person can take its labels away, not add any.
  function typesOf(offered) {
    const types = new Map(offered.map((type) => [type.name, {
      options: [], meanings: [], when: null, ...type, mark: markOf(type),
      shape: type.shape in SHAPES ? type.shape : "circle", colour: type.colour % COLOURS || 0,
    }]));
    return (name, mark) => types.get(name) ?? { name, title: `${name} (not offered here)`, mark, kind: mark, options: [], when: null, shape: "bar", unknown: true };
  }

  // Whether a label of this type has a value that people choose; of turns, yes is said by the mark alone.
  const hasValue = ({ kind, mark }) => mark === "detail" || (mark === "turn" && !["yes_no", "turn"].includes(kind));

  // A value as it is read.
  function words(type, value) {
    if (value === undefined || value === null) return "";
    const titles = new Map(type.options);
    if (Array.isArray(value)) return value.map((name) => titles.get(name) ?? name).join(", ");
    if (typeof value === "boolean") return value ? "yes" : "no";
    return type.kind === "text" ? `“${value}”` : titles.get(value) ?? String(value);
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
    if (type.mark !== "span" || type.overlap) return null;
    const beneath = others.find((other) => other.label === label.label && other.turn === label.turn && other.start < label.end && label.start < other.end);
    return beneath ? { why: "overlap", label: beneath } : null;
  }

  const holds = ([name, value], list, place) => list.some((label) => label.label === name && samePlace(label, place) &&
    (value === null || label.value === value || (Array.isArray(label.value) && label.value.includes(value))));

  // The types of details that are asked at the place of a label, with the label that answers each, if one does.
  function details(label, list, types) {
    return types.filter((type) => type.mark === "detail" && type.when && holds(type.when, list, label))
      .map((type) => ({ type, label: list.find((other) => other.label === type.name && samePlace(other, label)) }));
  }

  // A list without details that nothing asks for any more.
  function pruned(list, typeOf) {
    const kept = list.filter((label) => {
      const type = label && typeOf(label.label);
      return type?.mark !== "detail" || type.unknown || holds(type.when, list, label);
    });
    return kept.length === list.length ? list : pruned(kept, typeOf);
  }

  // A list in which `label` is another one, and what is said about it at its place has moved with it.
  const moved = (list, label, other) => list.map((each) => {
    if (each === label) return other;
    return kindOf(each) !== "turn" && samePlace(each, label) && each.value !== undefined ? { ...each, ...placeOf(other) } : each;
  });

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

  return { SHAPES, kindOf, same, samePlace, placeOf, inOrder, typesOf, hasValue, words, fits, refused, details, pruned, moved, lanes };
})();
