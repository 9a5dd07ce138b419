// What of labels is seen in the page: their types, the marks in the text, the buttons of labels, the tools at a selection.
const labelView = (() => {
  "use strict";
  const LONGEST = 60; // characters of a quotation

  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "class") element.className = value;
      else if (name === "click") element.addEventListener("click", value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }
  const button = (options, ...children) => make("button", { type: "button", ...options }, ...children);
  const caps = (keys) => keys.slice(0, 1).map((key) => make("kbd", { "aria-hidden": "true" }, key));
  const look = (type) => (type.unknown ? "label-unknown" : `label-colour-${type.colour}`);
  const glyph = (type) => make("span", { class: "label-glyph", "aria-hidden": "true" }, labelRules.SHAPES[type.shape]);

  // One turn: its item, its text, and where each of its code points stands in the page.
  class Turn {
    constructor(item) {
      this.item = item;
      this.number = Number(item.dataset.turn);
      this.name = `turn ${this.number + 1}`;
      this.body = item.querySelector("[data-text]");
      this.text = labelText.read(this.body);
      const { length } = this.body.dataset;
      this.exact = length === undefined || Number(length) === this.text.points.length;
      this.places = [];
      this.units = { word: labelText.units(this.text, "word"), character: labelText.units(this.text, "character") };
      this.aside = make("div", { class: "turn-labels" });
      this.open = button({ class: "plain turn-open", tabindex: "-1" }, `Label ${this.name}`);
      item.prepend(this.open);
      item.append(this.aside);
      this.body.tabIndex = -1;
      item.tabIndex = -1;
    }
    get length() { return this.text.points.length; }
    get rightToLeft() { return getComputedStyle(this.body).direction === "rtl"; }
    quote(start, end) {
      const words = labelText.quote(this.text, start, end);
      return `“${[...words].length > LONGEST ? `${[...words].slice(0, LONGEST - 1).join("")}…` : words}”`;
    }
  }

  class View {
    constructor(root, { types, typeOf, keysOf, press, paint }) {
      Object.assign(this, { root, types, typeOf, keysOf, press });
      this.turns = [...root.querySelectorAll("li[data-turn]")].map((item) => new Turn(item));
      for (const turn of this.turns) turn.open.addEventListener("click", () => press("turn-tools", turn));
      this.byNumber = new Map(this.turns.map((turn) => [turn.number, turn]));
      this.labelOf = new WeakMap();
      this.said = make("p", { class: "label-said", role: "status" });
      this.notes = make("div", { class: "label-notes" });
      this.undo = button({ class: "small secondary", click: () => press("undo") }, "Undo ", ...caps(keysOf("undo")));
      this.redo = button({ class: "small secondary", click: () => press("redo") }, "Redo ", ...caps(keysOf("redo")));
      this.whole = button({ class: "small secondary", "aria-pressed": "true", click: () => press("whole-words") }, "Whole words ", ...caps(keysOf("whole-words")));
      this.tools = make("div", { class: "label-tools", role: "toolbar" });
      root.setAttribute("role", "application"); // or a screen reader would keep the keys to itself
      if (!root.ariaLabel) root.ariaLabel = "Conversation to label";
      root.prepend(this.#legend(paint), this.notes);
      root.append(make("div", { class: "label-bar" }, this.said, make("div", { class: "buttons" }, this.undo, this.redo, this.whole)));
    }

    // The label types: a press on one paints with it, until it is pressed again.
    #legend(paint) {
      const where = { span: "words", turn: "a turn", relation: "two turns" };
      this.brushes = new Map(this.types.filter(({ mark }) => mark !== "detail").map((type) => [type, button(
        { class: `label-brush ${look(type)}`, "aria-pressed": "false", click: () => paint(type) },
        make("span", { class: type.mark === "span" ? `label-mark shape-${type.shape}` : "" }, glyph(type), ` ${type.title}`),
        " ", ...this.keysOf(`label:${type.name}`).map((key) => make("kbd", {}, key)), make("small", { class: "quiet" }, ` ${where[type.mark]}`))]));
      return make("ul", { class: "label-types", "aria-label": "Labels and their keys" }, ...[...this.brushes.values()].map((each) => make("li", {}, each)));
    }

    painting(type) {
      for (const [each, brush] of this.brushes) brush.ariaPressed = String(each === type);
      this.root.classList.toggle("is-painting", type !== null);
    }

    note(sentence) { this.notes.append(make("p", { class: "note note-warning" }, sentence)); }

    // A sentence for everybody; the same one twice is read twice.
    say(sentence, refused = false) {
      this.said.classList.toggle("problem", refused);
      this.said.replaceChildren(make("span", {}, sentence));
    }

    describe(label) {
      const type = this.typeOf(label.label, labelRules.kindOf(label));
      const turn = this.byNumber.get(label.turn);
      const value = labelRules.words(type, label.value);
      const title = value ? `${type.title} (${value})` : type.title;
      if ("other_turn" in label) return `${title}: from turn ${label.turn + 1} to turn ${label.other_turn + 1}`;
      return "start" in label ? `${title}: ${turn.quote(label.start, label.end)} in ${turn.name}` : `${title}: ${turn.name}`;
    }

    #button(label, turn, list) {
      const type = this.typeOf(label.label, labelRules.kindOf(label));
      const relation = "other_turn" in label;
      const outgoing = label.turn === turn.number;
      const suggested = "source" in label;
      const value = labelRules.words(type, label.value);
      const details = suggested ? [] : labelRules.details(label, list, this.types).filter((detail) => detail.label)
        .map((detail) => `${detail.type.title} ${labelRules.words(detail.type, detail.label.value)}`);
      const title = [value ? `${type.title}: ${value}` : type.title, ...details].join(" · ");
      const words = [glyph(type), ` ${title}`];
      if (relation && outgoing) words.push(` → turn ${label.other_turn + 1}`);
      if (relation && !outgoing) words.unshift(`turn ${label.turn + 1} → `);
      if (suggested) words.push(make("small", {}, ` ${this.sourceOf(label)}?`));
      // what is read aloud begins with what is seen
      const seen = `${relation && !outgoing ? `turn ${label.turn + 1} → ` : ""}${title}${relation && outgoing ? ` → turn ${label.other_turn + 1}` : ""}`;
      const place = relation ? `${outgoing ? "from" : "to"} ${turn.name}` : "start" in label ? `${turn.quote(label.start, label.end)} in ${turn.name}` : turn.name;
      const name = suggested ? `${seen} ${this.sourceOf(label)}? Suggested, ${place}` : `${seen}${relation || title !== type.title ? ", " : ": "}${place}`;
      const made = button({ class: `label-button ${suggested ? "is-suggested " : ""}${look(type)}`, tabindex: "-1", "aria-label": name, ...(suggested ? {} : { "aria-keyshortcuts": "Delete" }), title: name }, ...words);
      if (relation) made.dataset.related = outgoing ? label.other_turn : label.turn;
      this.labelOf.set(made, label);
      return made;
    }

    sourceOf({ source, score }) { return typeof score === "number" ? `${source}, ${score.toFixed(2)}` : source; }

    // Shows a turn with the labels and suggestions that have a place in it.
    render(turn, list, suggestions, { marked, current }) {
      const isHere = (label) => label.turn === turn.number || label.other_turn === turn.number;
      const here = list.filter((label) => isHere(label) && this.typeOf(label.label, labelRules.kindOf(label)).mark !== "detail");
      const waiting = suggestions.filter(isHere);
      const spans = labelRules.inOrder([...here, ...waiting].filter((label) => labelRules.kindOf(label) === "span"));
      this.#text(turn, spans, list);
      const others = [...here, ...waiting].filter((label) => !spans.includes(label)).map((label) => this.#button(label, turn, list));
      const first = marked === turn ? [make("strong", { class: "marked-first" }, "First turn of a relation")] : [];
      turn.aside.replaceChildren(...first, ...others);
      turn.item.classList.toggle("is-marked", marked === turn);
      turn.item.setAttribute("aria-label", this.#nameOf(turn, here, waiting));
      this.reach(turn, current === turn);
    }

    #nameOf(turn, here, waiting) {
      const author = turn.item.querySelector(".author")?.textContent.trim();
      const titles = here.map((label) => {
        const type = this.typeOf(label.label);
        const value = labelRules.words(type, label.value);
        return value ? `${type.title} ${value}` : type.title;
      });
      const suggested = waiting.length ? `${waiting.length} ${waiting.length === 1 ? "suggestion" : "suggestions"}` : "";
      return [`Turn ${turn.number + 1}`, author, turn.text.points.length ? labelText.quote(turn.text, 0, turn.length) : "no text", titles.length ? `labels: ${titles.join(", ")}` : "", suggested].filter(Boolean).join(", ");
    }

    #text(turn, spans, list) {
      const lane = labelRules.lanes(spans);
      const edges = [...new Set([0, turn.length, ...spans.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
      const wrap = (content, over) => over.reduce((inner, span) => {
        const type = this.typeOf(span.label, "span");
        const mark = make("span", { class: `label-mark ${"source" in span ? "is-suggested " : ""}shape-${type.shape} label-lane-${Math.min(3, lane.get(span))} ${look(type)}` }, ...inner);
        this.labelOf.set(mark, span);
        return [mark];
      }, content);
      const content = [];
      turn.places = [];
      for (const [place, from] of edges.entries()) {
        const open = spans.filter(({ start, end }) => start < from && from < end); // around a title that stands between words
        const titles = spans.filter(({ end }) => end === from).map((span) => this.#button(span, turn, list));
        if (titles.length) content.push(...wrap(titles, open));
        const to = edges[place + 1];
        if (to === undefined) break;
        content.push(...wrap(labelText.nodes(turn.text, from, to, turn.places), spans.filter(({ start, end }) => start <= from && to <= end)));
      }
      turn.body.replaceChildren(...content);
    }

    buttonsOf(turn) { return [...turn.item.querySelectorAll(".label-button")]; }

    // Tab leads to one turn, and to what is in it.
    reach(turn, is) {
      turn.item.tabIndex = is ? 0 : -1;
      for (const each of turn.item.querySelectorAll("button")) each.tabIndex = is ? 0 : -1;
    }

    // Tools beside `rect`: above what is read with a mouse or keys, below a finger's selection.
    // `buttons` are {type, text, keys, act, …attributes}, or elements.
    openTools(turn, rect, title, buttons, below = false) {
      this.closeTools();
      this.tools.replaceChildren(make("p", {}, title), ...buttons.map((each) => {
        if (each instanceof Element) return each;
        const { type, text, keys = [], act, ...rest } = each;
        return button({ class: `small secondary ${type ? look(type) : ""}`, click: act, ...rest }, ...(type ? [glyph(type), " "] : []), text, ...(keys.length ? [" "] : []), ...caps(keys));
      }),
      button({ class: "small secondary", "aria-label": "Close", click: () => this.press("leave") }, "×"));
      this.tools.ariaLabel = title;
      turn.item.append(this.tools);
      const item = turn.item.getBoundingClientRect();
      const { width, height } = this.tools.getBoundingClientRect();
      const bar = document.querySelector("header.bar")?.getBoundingClientRect().bottom ?? 0;
      const above = !below && rect.top - height - 6 > Math.max(0, bar);
      this.tools.style.left = `${Math.max(0, Math.min(rect.left - item.left, turn.item.clientWidth - width))}px`;
      this.tools.style.top = `${(above ? rect.top - height - 6 : rect.bottom + 6) - item.top}px`;
    }

    closeTools() { this.tools.remove(); }
  }

  return { View, make };
})();
