// The tools at a place of a conversation: what can be labelled there, the value of a label, what can be done with one.
const labelTools = (() => {
  "use strict";
  const { make } = labelView;
  const MOST_BUTTONS = 21;

  // The values of a type that have a button each, as [value, words, the digit that chooses it]; null for those that are written.
  function choices(type) {
    if (type.kind === "yes_no") return [[true, "yes", "1"], [false, "no", "0"]];
    if (type.options.length) return type.options.map(([name, title], at) => [name, title, at < 9 ? String(at + 1) : ""]);
    const { low, high } = type;
    if (type.kind !== "scale" || !Number.isInteger(low) || !Number.isInteger(high - low) || high - low >= MOST_BUTTONS) return null;
    const meanings = new Map(type.meanings);
    return Array.from({ length: high - low + 1 }, (_, at) => low + at)
      .map((value) => [value, meanings.has(value) ? `${value} ${meanings.get(value)}` : String(value), value >= 0 && value < 10 ? String(value) : ""]);
  }

  class Tools {
    constructor(page) { Object.assign(this, { page, view: page.view }); }

    words({ turn, pointer, extent, range }) {
      const { page, view } = this;
      const rects = [...range.getClientRects()];
      const rect = pointer === "touch" ? rects.at(-1) : rects[0];
      const types = page.types.filter(({ mark }) => mark === "span");
      if (!types.length || !rect) return;
      this.#open(turn, rect, `Label ${turn.quote(...extent)}`, types.map((type) => page.choice(type)), pointer === "touch");
    }

    turn(turn) {
      const { page } = this;
      const other = page.marked && page.marked !== turn;
      const types = page.types.filter(({ mark }) => mark === "turn" || (mark === "relation" && other)).map((type) => {
        const choice = page.choice(type);
        return type.mark === "relation" ? { ...choice, text: `${type.title}: from ${page.marked.name}` } : choice;
      });
      const relates = page.types.some(({ mark }) => mark === "relation");
      const mark = { text: page.marked === turn ? "Not the first turn" : "First turn of a relation", keys: page.keys.of("mark"), act: () => page.mark(turn) };
      const words = { text: "Select words", keys: page.keys.of("enter"), act: () => page.enter(turn) };
      const spans = turn.length > 0 && page.types.some((type) => type.mark === "span");
      this.#open(turn, turn.open.getBoundingClientRect(), `Label ${turn.name}`, [...types, ...(relates && !other ? [mark] : []), ...(spans ? [words] : [])]);
      this.view.tools.querySelector("button").focus();
    }

    label(target) {
      const { page, view } = this;
      const label = view.labelOf.get(target);
      if ("source" in label) return this.suggestion(label, target);
      const type = page.typeOf(label.label, labelRules.kindOf(label));
      const end = (text, which, later) => ({ text, act: () => { page.stretch(label, which, later); this.again(); } });
      const buttons = labelRules.details(label, page.shown, page.types).map((detail) => ({
        type: detail.type, text: detail.label ? `${detail.type.title}: ${labelRules.words(detail.type, detail.label.value)}` : `${detail.type.title} …`,
        keys: page.keys.of(`label:${detail.type.name}`), act: () => this.value(detail.type, label),
      }));
      if (labelRules.hasValue(type)) buttons.push({ text: "Change the value", act: () => this.value(type, label) });
      buttons.push({ text: "Delete", keys: page.keys.of("delete"), act: () => page.remove(label) });
      if (type.mark === "span") buttons.push(end("Start earlier", "start", -1), end("Start later", "start", 1), end("End earlier", "end", -1), end("End later", "end", 1));
      for (const other of page.types) {
        if (other.mark === type.mark && other !== type) buttons.push({ ...page.choice(other), text: `Make it ${other.title}`, act: () => page.retype(label, other) });
      }
      const { related } = target.dataset;
      if (related) buttons.push({ text: `Go to turn ${Number(related) + 1}`, act: () => page.focusTurn(view.byNumber.get(Number(related))) });
      page.drop();
      return this.#open(page.current, target.getBoundingClientRect(), view.describe(label), buttons);
    }

    suggestion(suggested, target) {
      const { page, view } = this;
      const type = page.typeOf(suggested.label, labelRules.kindOf(suggested));
      const buttons = [
        { text: "Accept", keys: page.keys.of("accept"), act: () => page.accept(suggested) },
        { text: "Dismiss", keys: page.keys.of("dismiss"), act: () => page.dismiss(suggested) },
      ];
      if (labelRules.hasValue(type)) buttons.push({ text: "Another value", act: () => this.value(type, suggested, suggested.suggestion) });
      for (const other of page.types) {
        if (other.mark === type.mark && other !== type) buttons.push({ ...page.choice(other), text: `Correct: ${other.title}`, act: () => page.accept(suggested, other) });
      }
      page.drop();
      return this.#open(page.current, target.getBoundingClientRect(), `Suggested by ${view.sourceOf(suggested)}: ${view.describe(suggested)}`, buttons);
    }

    // Asks for the value of a type at the place of a label; `suggestion` is what it corrects.
    value(type, label, suggestion = null) {
      const { page, view } = this;
      const place = labelRules.placeOf(label);
      const turn = view.byNumber.get(place.turn);
      const stored = page.list.find((each) => each.label === type.name && labelRules.samePlace(each, place));
      const put = (value) => page.put(type, place, value, suggestion ?? stored?.suggestion ?? null);
      page.current = turn;
      const anchor = this.view.buttonsOf(turn).find((each) => labelRules.samePlace(view.labelOf.get(each), place)) ?? turn.open;
      const offered = choices(type);
      const many = type.kind === "many_of";
      const buttons = offered ? offered.map(([value, text, digit]) => ({
        type, text, keys: digit ? [digit] : [], "data-digit": digit, "aria-pressed": String(many ? stored?.value?.includes(value) ?? false : stored?.value === value),
        act: many ? () => this.toggle(type, label, value, suggestion) : () => put(value),
      })) : this.#written(type, stored, put);
      if (many) buttons.push({ text: "Done", act: () => page.after(type, place) });
      this.#open(turn, anchor.getBoundingClientRect(), `${type.title}, ${turn.name}`, buttons);
      (view.tools.querySelector("[aria-pressed=true]") ?? view.tools.querySelector("button, input, textarea")).focus();
    }

    // One of several options, on or off; without any the label goes.
    toggle(type, label, option, suggestion) {
      const place = labelRules.placeOf(label);
      const stored = this.page.list.find((each) => each.label === type.name && labelRules.samePlace(each, place));
      const before = stored?.value ?? [];
      const value = type.options.map(([name]) => name).filter((name) => (name === option) !== before.includes(name));
      const at = [...this.view.tools.querySelectorAll("button")].indexOf(document.activeElement);
      this.page.put(type, place, value.length ? value : null, suggestion ?? stored?.suggestion ?? null, true);
      this.value(type, place, suggestion);
      this.view.tools.querySelectorAll("button")[Math.max(0, at)].focus();
    }

    // A field for a number or a text, and the button that takes what it has.
    #written(type, stored, put) {
      const number = type.kind === "scale";
      const field = number
        ? make("input", { type: "number", min: type.low, max: type.high, step: "any", "aria-label": type.title })
        : make("textarea", { rows: "2", maxlength: "10000", "aria-label": type.title });
      field.value = stored?.value ?? "";
      const take = () => {
        const text = field.value.trim();
        if (number && (text === "" || !field.checkValidity())) field.reportValidity();
        else put(number ? Number(text) : text || null);
      };
      field.addEventListener("keydown", (event) => {
        if (event.isComposing || event.shiftKey || !["Enter", "Escape"].includes(event.key)) return;
        event.preventDefault();
        event.stopPropagation();
        if (event.key === "Enter") take();
        else this.page.press("leave");
      });
      return [field, { text: "Set this value", act: take }];
    }

    // Presses the button that has this digit; whether there is one.
    digit(event) {
      const button = this.view.tools.isConnected && /^[0-9]$/.test(event.key) && !event.ctrlKey && !event.altKey && !event.metaKey
        ? this.view.tools.querySelector(`[data-digit="${event.key}"]`) : null;
      button?.click();
      return Boolean(button);
    }

    again() {
      if (this.view.labelOf.has(document.activeElement)) this.label(document.activeElement);
    }

    #open(...options) { this.view.openTools(...options); }
  }

  return { Tools };
})();
