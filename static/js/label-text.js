// The text of a turn as its labels see it: Unicode code points, words, and the places of both in the page.
const labelText = (() => {
  "use strict";
  const language = document.documentElement.lang || undefined;
  const segmenters = { word: new Intl.Segmenter(language, { granularity: "word" }), character: new Intl.Segmenter(language, { granularity: "grapheme" }) };
  const SAYS = /[\p{L}\p{N}\p{S}\p{Extended_Pictographic}]/u; // what is neither space nor punctuation
  const count = (text) => [...text].length;

  // The text of an element that shows it as stored: its code points, and by their index the numbers that stand for those which
  // webapp/core/visible.py does not show as they are.
  function read(element) {
    const points = [];
    const numbers = new Map();
    for (const node of element.childNodes) {
      if (node.nodeType === Node.ELEMENT_NODE && node.matches(".code-point")) {
        numbers.set(points.length, node.textContent);
        points.push(String.fromCodePoint(Number.parseInt(node.textContent.slice(2), 16)));
      } else points.push(...node.textContent);
    }
    return { points, numbers };
  }

  // Code points `start` to `end` as they are shown.
  const quote = ({ points, numbers }, start, end) => points.slice(start, end).map((point, at) => numbers.get(start + at) ?? point).join("");

  // Words or characters (grapheme clusters) of a text, as [start, end). An emoji is a word, punctuation is none; a text
  // without words is divided into its characters.
  function units({ points }, kind) {
    const all = [];
    let at = 0;
    for (const { segment } of segmenters[kind].segment(points.join(""))) {
      const end = at + count(segment);
      if (kind === "character" || SAYS.test(segment)) all.push([at, end]);
      at = end;
    }
    return all.length || kind === "character" ? all : units({ points }, "character");
  }

  // The units that an extent touches, as [first, last] indices; null if it touches none.
  function touched(all, start, end) {
    const first = all.findIndex((unit) => unit[1] > start && unit[0] < end);
    if (first < 0) return null;
    return [first, all.findLastIndex((unit) => unit[1] > start && unit[0] < end)];
  }

  // Nodes that show code points `from` to `to`, each recorded in `places` with where it stands.
  function nodes({ points, numbers }, from, to, places) {
    const made = [];
    const add = (node, start, end) => {
      places.push({ node, start, end });
      made.push(node);
    };
    let start = from;
    for (let at = from; at <= to; at += 1) {
      if (at < to && !numbers.has(at)) continue;
      if (at > start) add(document.createTextNode(points.slice(start, at).join("")), start, at);
      if (at < to) {
        const number = document.createElement("span");
        number.className = "code-point";
        number.textContent = numbers.get(at);
        add(number, at, at + 1);
      }
      start = at + 1;
    }
    return made;
  }

  // The code point at a boundary of a range; what is not text of the turn, such as the title on a label, counts nothing.
  function offsetOf(places, container, offset) {
    const point = document.createRange();
    point.setStart(container, offset);
    for (const { node, start } of places) {
      if (node === container && node.nodeType === Node.TEXT_NODE) return start + count(node.data.slice(0, offset));
      const whole = document.createRange();
      whole.selectNode(node);
      if (whole.compareBoundaryPoints(Range.START_TO_START, point) >= 0) return start;
    }
    return places.at(-1)?.end ?? 0;
  }

  // The range of the page that shows code points `start` to `end`.
  function rangeOf(places, start, end) {
    const range = document.createRange();
    const put = (offset, place, before) => {
      if (place.node.nodeType !== Node.TEXT_NODE) return before ? ["Before", place.node] : ["After", place.node];
      return ["", place.node, [...place.node.data].slice(0, offset - place.start).join("").length];
    };
    const first = places.find((place) => place.end > start) ?? places.at(-1);
    const last = places.findLast((place) => place.start < end) ?? places[0];
    const [beside, node, at] = put(start, first, true);
    range[`setStart${beside}`](node, at);
    const [behind, other, until] = put(end, last, false);
    range[`setEnd${behind}`](other, until);
    return range;
  }

  return { read, quote, units, touched, nodes, offsetOf, rangeOf };
})();
