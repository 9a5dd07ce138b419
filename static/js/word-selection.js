// Words of one turn that are selected, and how a pointer or a finger selects them.
const wordSelection = (() => {
  "use strict";
  const FINGER_MS = 350; // after the last move of a finger's selection
  const [ABOVE, BELOW] = [100, 90]; // pixels of a window that tools and the bar at its end may cover

  // Units `anchor` to `head` of a turn, of the kind "word" or "character". `pointer` is "mouse", "touch", or "" for keys.
  class Selection {
    constructor(turn, kind, anchor, head, pointer = "") { Object.assign(this, { turn, kind, anchor, head, pointer }); }

    // As code points [start, end).
    get extent() {
      const all = this.turn.units[this.kind];
      return [all[Math.min(this.anchor, this.head)][0], all[Math.max(this.anchor, this.head)][1]];
    }
    get range() { return labelText.rangeOf(this.turn.places, ...this.extent); }

    // The one `by` units further in the order of the text; with what is between if `extend`.
    moved(by, extend) {
      const { turn, kind, anchor, head } = this;
      const from = extend ? head : by > 0 ? Math.max(anchor, head) : Math.min(anchor, head);
      const to = Math.max(0, Math.min(turn.units[kind].length - 1, from + by));
      return new Selection(turn, kind, extend ? anchor : to, to);
    }

    // A finger's selection stays as the browser has it: changing it would take its handles away.
    show() {
      if (this.pointer === "touch") return;
      const { startContainer, startOffset, endContainer, endOffset } = this.range;
      getSelection().setBaseAndExtent(startContainer, startOffset, endContainer, endOffset);
      if (this.pointer === "") this.#reveal();
    }

    // Scrolls to the unit that the arrow keys have reached, in a turn that may be higher than the window.
    #reveal() {
      const { top, bottom } = labelText.rangeOf(this.turn.places, ...this.turn.units[this.kind][this.head]).getBoundingClientRect();
      if (bottom > window.innerHeight - BELOW) window.scrollBy(0, bottom - window.innerHeight + BELOW);
      else if (top < ABOVE) window.scrollBy(0, top - ABOVE);
    }

    // With all up to the unit at a code point.
    upTo(offset) {
      const all = this.turn.units[this.kind];
      const head = all.findIndex(([, end]) => end > offset);
      return new Selection(this.turn, this.kind, this.anchor, head < 0 ? all.length - 1 : head);
    }

    same(other) { return other !== null && ["turn", "kind", "anchor", "head"].every((member) => this[member] === other[member]); }
  }

  // The units that an extent touches; characters where there is no word in it.
  function around(turn, kind, [start, end], pointer) {
    const within = labelText.touched(turn.units[kind], start, end);
    return within ? new Selection(turn, kind, ...within, pointer) : new Selection(turn, "character", ...labelText.touched(turn.units.character, start, end), pointer);
  }

  // What the browser's selection has of each turn's text, as { turn, extent }.
  function parts(turns) {
    const native = getSelection();
    if (!native.rangeCount || native.isCollapsed) return [];
    const range = native.getRangeAt(0);
    return turns.filter((turn) => range.intersectsNode(turn.body)).map((turn) => ({
      turn, extent: [labelText.offsetOf(turn.places, range.startContainer, range.startOffset), labelText.offsetOf(turn.places, range.endContainer, range.endOffset)],
    })).filter(({ extent: [start, end] }) => start < end);
  }

  // The code point of a turn at a place of the window, where a finger has tapped; null where the browser cannot say.
  function offsetAt(turn, x, y) {
    const caret = document.caretPositionFromPoint?.(x, y);
    const range = caret ? null : document.caretRangeFromPoint?.(x, y);
    const [node, offset] = caret ? [caret.offsetNode, caret.offset] : [range?.startContainer, range?.startOffset];
    return node && turn.body.contains(node) ? labelText.offsetOf(turn.places, node, offset) : null;
  }

  // Calls `begin` with its element and kind of pointer when a press may begin a selection in `root`, and `end` with the kind of pointer and whether Alt is held when
  // a mouse has made one or a finger's selection rests. `spared` are elements that leave the selection alone.
  function follow(root, { begin, end, spared }) {
    let [pressed, finger, timer] = [false, false, 0];
    const gone = new AbortController();
    const on = (type, listener) => document.addEventListener(type, (event) => {
      if (root.isConnected) listener(event);
      else gone.abort(); // another part of the page has taken its place
    }, { signal: gone.signal });
    on("pointerdown", ({ target, pointerType }) => {
      [pressed, finger] = [!spared(target), pointerType === "touch"];
      if (pressed && root.contains(target)) begin(target, pointerType);
    });
    on("pointerup", ({ altKey }) => {
      if (pressed && !finger) window.setTimeout(() => end("mouse", altKey)); // the click has changed the selection by then
      pressed = false;
    });
    on("pointercancel", () => { pressed = false; });
    on("selectionchange", () => {
      window.clearTimeout(timer);
      if (finger) timer = window.setTimeout(() => end("touch", false), FINGER_MS);
    });
  }

  return { Selection, around, parts, offsetAt, follow };
})();
