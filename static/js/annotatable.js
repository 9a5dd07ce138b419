// Labels of words, turns and pairs of turns, by keyboard, pointer or touch: what [data-annotatable] holds.
//
// <div data-annotatable data-types='[{name, title, kind, colour, shape, key, overlap}]' data-keys='{"next": "n"}'> holds
//   an <ol> of <li data-turn="4">, with an .author if the turn has one, and the text in
//     <span class="utterance" dir="auto" data-text data-length="12">: exactly as stored, of so many code points, and
//   <input type="hidden" name="labels">: a JSON list of what label-rules.js describes. It has every change at once, and then
//     fires `change`.
// `kind` is span, turn or relation; `colour` 0 to 7; `shape` one of SHAPES in label-rules.js; `key` as in shortcuts.js. A span
// of a type with `overlap` false does not overlap another of that type. `data-keys` has a person's own keys by the name of
// an action below or "label:" and the name of a type. Where the length differs, words of that turn cannot be labelled.
(() => {
  "use strict";
  const { kindOf } = labelRules;

  const ACTIONS = [
    { name: "next", title: "The next turn", keys: ["j", "ArrowDown"] },
    { name: "previous", title: "The turn before", keys: ["k", "ArrowUp"] },
    { name: "enter", title: "Select words of the turn", keys: ["Enter"], fixed: true },
    { name: "right", title: "The word to the right", keys: ["ArrowRight"], fixed: true },
    { name: "left", title: "The word to the left", keys: ["ArrowLeft"], fixed: true },
    { name: "extend-right", title: "Extend the selection to the right", keys: ["Shift+ArrowRight"], fixed: true },
    { name: "extend-left", title: "Extend the selection to the left", keys: ["Shift+ArrowLeft"], fixed: true },
    { name: "first", title: "The first word", keys: ["Home"], fixed: true },
    { name: "last", title: "The last word", keys: ["End"], fixed: true },
    { name: "extend-first", title: "Extend the selection to the first word", keys: ["Shift+Home"], fixed: true },
    { name: "extend-last", title: "Extend the selection to the last word", keys: ["Shift+End"], fixed: true },
    { name: "leave", title: "Leave the words, or the label", keys: ["Escape"], fixed: true },
    { name: "whole-words", title: "Select whole words, or single characters", keys: ["w"] },
    { name: "mark", title: "Mark the first turn of a relation", keys: ["m"] },
    { name: "delete", title: "Delete the label that has the focus", keys: ["Delete", "Backspace"] },
    { name: "end-right", title: "Move the end of the label to the right", keys: ["Shift+Alt+ArrowRight"], fixed: true },
    { name: "end-left", title: "Move the end of the label to the left", keys: ["Shift+Alt+ArrowLeft"], fixed: true },
    { name: "start-earlier", title: "Move the start of the label to an earlier word", keys: ["Shift+Alt+ArrowUp"], fixed: true },
    { name: "start-later", title: "Move the start of the label to a later word", keys: ["Shift+Alt+ArrowDown"], fixed: true },
    { name: "undo", title: "Undo", keys: ["Ctrl+z"] },
    { name: "redo", title: "Redo", keys: ["Ctrl+Shift+z", "Ctrl+y"] },
  ];

  class Annotatable {
    constructor(root) {
      this.root = root;
      this.field = root.querySelector("input[type=hidden][name=labels]");
      this.types = JSON.parse(root.dataset.types || "[]");
      const labelActions = this.types.map(({ name, title, key }) => ({ name: `label:${name}`, title, keys: key ? [key] : [] }));
      this.keys = shortcuts.bind([...ACTIONS, ...labelActions], JSON.parse(root.dataset.keys || "{}"));
      this.typeOf = labelRules.typesOf(this.types);
      this.types = this.types.map((type) => this.typeOf(type.name));
      this.view = new labelView.View(root, { types: this.types, typeOf: this.typeOf, keysOf: this.keys.of, actions: ACTIONS, press: (action, turn) => this.press(action, turn) });
      this.kind = "word";
      [this.current, this.marked, this.selection] = [this.view.turns[0], null, null];
      for (const problem of this.keys.problems) this.view.note(problem);
      this.load();
      this.listen();
    }

    // --- the list ---

    load() {
      let list = null;
      try { list = JSON.parse(this.field.value || "[]"); } catch { /* reported below */ }
      this.broken = !Array.isArray(list);
      if (this.broken) this.view.note("The stored labels cannot be read. They are kept as they are, and nothing can be labelled here.");
      this.history = labelRules.history(this.broken ? [] : list);
      this.lengths = new Map(this.view.turns.map((turn) => [turn.number, turn.exact ? turn.length : -1]));
      const lost = this.history.list.filter((label) => !labelRules.fits(label, this.lengths));
      if (lost.length) this.view.note(`${lost.length} stored ${lost.length === 1 ? "label has" : "labels have"} no place in these turns and cannot be shown: ${lost.map((label) => JSON.stringify(label)).join(", ")}. They are kept.`);
      for (const turn of this.view.turns) this.render(turn);
      this.settle();
    }

    get shown() { return this.history.list.filter((label) => labelRules.fits(label, this.lengths)); }
    render(turn) { this.view.render(turn, this.shown, this); }

    change(list, sentence) {
      const before = this.history.list;
      this.history.change(list, sentence);
      this.written(before, sentence);
    }

    // After every change, undone and redone ones too: turns are shown anew, the focus stays, the field has the list.
    written(before, sentence, focused = null) {
      const list = this.history.list;
      const changed = [...before.filter((label) => !list.includes(label)), ...list.filter((label) => !before.includes(label))];
      const numbers = new Set(changed.flatMap((label) => [label.turn, label.other_turn]));
      const held = document.activeElement;
      const inside = this.root.contains(held) && (this.view.labelOf.has(held) || this.view.tools.contains(held));
      this.view.closeTools();
      for (const turn of this.view.turns) if (numbers.has(turn.number)) this.render(turn);
      this.settle();
      this.field.value = JSON.stringify(list);
      this.field.dispatchEvent(new Event("change", { bubbles: true }));
      if (focused) this.focusLabel(focused);
      else if (inside && !held.isConnected) (this.selection?.turn.body ?? this.current.item).focus();
      if (this.selection) this.selection.show();
      this.view.say(sentence);
    }

    settle() {
      this.view.undo.ariaDisabled = String(!this.history.canUndo);
      this.view.redo.ariaDisabled = String(!this.history.canRedo);
    }

    add(label) {
      const type = this.typeOf(label.label);
      const refusal = labelRules.refused(label, this.shown, type);
      if (refusal) return this.refuse(refusal, type);
      return this.change([...this.history.list, label], `${this.view.describe(label)}.`);
    }

    refuse({ why, label }, type) {
      if (why === "twin") this.view.say(`Already labelled: ${this.view.describe(label)}.`, true);
      else this.view.say(`“${type.title}” may not overlap another “${type.title}”: ${this.view.byNumber.get(label.turn).quote(label.start, label.end)} in turn ${label.turn + 1} has that label. Nothing was changed.`, true);
    }

    remove(label) {
      const turn = this.current;
      const at = this.view.buttonsOf(turn).findIndex((each) => this.view.labelOf.get(each) === label);
      this.change(this.history.list.filter((other) => other !== label), `Deleted: ${this.view.describe(label)}.`);
      const left = this.view.buttonsOf(turn);
      (left[Math.min(at, left.length - 1)] ?? turn.item).focus();
    }

    // Moves one end of a span by a word, or by a character where words are off; later is 1 or -1.
    stretch(label, end, later) {
      const turn = this.view.byNumber.get(label.turn);
      const all = turn.units[this.kind].map((unit) => unit[end === "start" ? 0 : 1]);
      const next = later > 0 ? all.find((at) => at > label[end]) : all.findLast((at) => at < label[end]);
      const moved = { ...label, [end]: next };
      if (next === undefined || moved.start >= moved.end) return this.view.say(`The ${end} cannot move further.`, true);
      const type = this.typeOf(label.label, "span");
      const refusal = labelRules.refused(moved, this.shown.filter((other) => other !== label), type);
      if (refusal) return this.refuse(refusal, type);
      const before = this.history.list;
      this.history.change(before.map((other) => (other === label ? moved : other)), `${this.view.describe(moved)}.`);
      return this.written(before, `${this.view.describe(moved)}.`, moved);
    }

    step(way) {
      if (!(way === "undo" ? this.history.canUndo : this.history.canRedo)) return this.view.say(`Nothing to ${way}.`);
      const before = this.history.list;
      const sentence = this.history[way]();
      return this.written(before, `${way === "undo" ? "Undone" : "Done again"}: ${sentence}`);
    }

    apply(type) {
      if (this.broken) return this.view.say("Nothing can be labelled here: the stored labels cannot be read.", true);
      if (type.kind === "span") return this.applyToWords(type);
      const turn = this.selection?.turn ?? this.current;
      if (type.kind === "turn") return this.add({ label: type.name, turn: turn.number });
      if (!this.marked) return this.view.say(`“${type.title}” relates two turns: mark the first (${this.keys.of("mark")[0] ?? "Label turn"}), then go to the second.`, true);
      if (this.marked === turn) return this.view.say(`“${type.title}” relates two turns: go to the second one.`, true);
      const first = this.marked;
      this.marked = null;
      this.render(first);
      return this.add({ label: type.name, turn: first.number, other_turn: turn.number });
    }

    applyToWords(type) {
      if (!this.selection) return this.view.say(`“${type.title}” labels words: select some first (Enter, then the arrow keys).`, true);
      const { turn } = this.selection;
      const [start, end] = this.selection.extent;
      const before = this.history.list;
      this.add({ label: type.name, turn: turn.number, start, end });
      if (this.history.list === before) return null; // refused: the words stay selected
      if (this.selection.pointer) this.drop();
      else this.openWords();
      return null;
    }

    // --- the selection ---

    select(selection) {
      this.selection = selection;
      const { turn, pointer, extent: [start, end] } = selection;
      const within = this.shown.filter((label) => kindOf(label) === "span" && label.turn === turn.number && label.start < end && start < label.end);
      const inside = within.length ? ` (in ${within.map((label) => this.typeOf(label.label, "span").title).join(", ")})` : "";
      this.view.say(`${pointer ? "Selected: " : ""}${turn.quote(start, end)}${inside}`);
      selection.show();
      this.openWords();
    }

    openWords() {
      const { turn, pointer, extent, range } = this.selection;
      const rects = [...range.getClientRects()];
      const rect = pointer === "touch" ? rects.at(-1) : rects[0];
      const types = this.types.filter((type) => type.kind === "span");
      if (!types.length || !rect) return;
      this.view.openTools(turn, rect, `Label ${turn.quote(...extent)}`, types.map((type) => this.choice(type)), pointer === "touch");
    }

    choice(type) { return { type, text: type.title, keys: this.keys.of(`label:${type.name}`), act: () => this.apply(type) }; }

    drop() {
      if (!this.selection) return;
      this.selection = null;
      this.view.closeTools();
      getSelection().removeAllRanges();
    }

    // Takes over what a pointer has selected; `free` keeps to characters.
    take(pointer, free) {
      const parts = wordSelection.parts(this.view.turns);
      if (parts.length === 0) return;
      const [{ turn, extent }] = parts;
      if (parts.length > 1) {
        this.drop();
        this.view.say(`A label stands in one turn: this selection begins in ${turn.name} and ends in ${parts.at(-1).turn.name}. Nothing was labelled.`, true);
      } else if (!turn.exact) {
        this.drop();
        this.inexact(turn);
      } else {
        const selection = wordSelection.around(turn, free ? "character" : this.kind, extent, pointer);
        if (selection.same(this.selection)) return;
        this.focused(turn.item);
        this.select(selection);
      }
    }

    inexact(turn) { this.view.say(`The text of ${turn.name} cannot be shown exactly as it is stored, so its words cannot be labelled.`, true); }

    // --- focus ---

    turnAt(element) { return this.view.turns.find(({ item }) => item.contains(element)); }

    focusTurn(turn) {
      this.drop();
      turn?.item.focus();
    }

    focusLabel(label) { this.view.buttonsOf(this.view.byNumber.get(label.turn)).find((each) => this.view.labelOf.get(each) === label)?.focus(); }

    enter(turn) {
      if (!turn.exact) return this.inexact(turn);
      if (!turn.length) return this.view.say(`${turn.name} has no text.`, true);
      turn.body.focus();
      if (this.selection?.turn !== turn) this.select(new wordSelection.Selection(turn, this.kind, 0, 0));
      return null;
    }

    // --- what a key or button does; true if the key was used ---

    press(action, turn = this.current) {
      if (action === "turn-tools") return this.turnTools(turn);
      if (action === "undo" || action === "redo") this.step(action);
      else if (action === "whole-words") this.toggle();
      else if (action === "leave") this.leave();
      return true;
    }

    act(action, target) {
      if (action.startsWith("label:")) this.apply(this.typeOf(action.slice(6)));
      else if (["undo", "redo", "whole-words"].includes(action)) this.press(action);
      else if (action === "next" || action === "previous") this.go(action === "next" ? 1 : -1, target);
      else if (action === "leave") return this.leave();
      else if (action === "mark") this.mark(this.current);
      else if (action === "enter" && target === this.current?.item) this.enter(this.current);
      else if (this.view.labelOf.has(target)) return this.actOnLabel(action, this.view.labelOf.get(target), target);
      else if (this.view.tools.contains(target)) return this.actOnTools(action, target);
      else if (target === this.selection?.turn.body) return this.actOnWords(action);
      else return false;
      return true;
    }

    actOnTools(action, target) {
      const beside = { right: target.nextElementSibling, left: target.previousElementSibling }[action];
      if (beside?.matches("button")) beside.focus();
      return beside !== undefined;
    }

    actOnWords(action) {
      const flip = this.selection.turn.rightToLeft ? -1 : 1;
      const far = this.selection.turn.length;
      const by = { right: flip, left: -flip, first: -far, last: far }[action.replace("extend-", "")];
      if (by === undefined) return false;
      this.select(this.selection.moved(by, action.startsWith("extend-")));
      return true;
    }

    actOnLabel(action, label, target) {
      const flip = this.current.rightToLeft ? -1 : 1;
      const ends = { "end-right": ["end", flip], "end-left": ["end", -flip], "start-earlier": ["start", -1], "start-later": ["start", 1] };
      if (action === "delete") this.remove(label);
      else if (ends[action] && kindOf(label) === "span") this.stretch(label, ...ends[action]);
      else if (action === "left" || action === "right") {
        const all = this.view.buttonsOf(this.current);
        all[all.indexOf(target) + (action === "right" ? 1 : -1)]?.focus();
      } else return false;
      return true;
    }

    go(by, target) {
      const { turns } = this.view;
      const at = this.turnAt(target) ? turns.indexOf(this.current) + by : turns.indexOf(this.current);
      this.focusTurn(turns[Math.max(0, Math.min(turns.length - 1, at))]);
    }

    leave() {
      const { activeElement } = document;
      const open = this.view.tools.isConnected || this.selection;
      if (this.view.tools.isConnected && this.view.labelOf.has(activeElement)) return this.view.closeTools() ?? true;
      if (!open && !this.view.labelOf.has(activeElement) && !this.marked) return false;
      if (!open && activeElement === this.current.item) this.mark(this.marked); // nothing else to leave
      this.view.closeTools();
      this.focusTurn(this.current);
      return true;
    }

    mark(turn) {
      const before = this.marked;
      this.marked = before === turn ? null : turn;
      const held = document.activeElement;
      for (const each of new Set([before, turn])) if (each) this.render(each);
      if (!held.isConnected || held === document.body) this.focusTurn(turn);
      if (this.marked && this.selection) this.selection.show();
      this.view.closeTools();
      this.view.say(this.marked ? `Turn ${turn.number + 1} is the first turn of a relation. Go to the second.` : "No turn is marked.");
    }

    toggle() {
      this.kind = this.kind === "word" ? "character" : "word";
      this.view.whole.ariaPressed = String(this.kind === "word");
      this.view.say(this.kind === "word" ? "Whole words are selected." : "Single characters are selected.");
      if (!this.selection) return;
      this.select(wordSelection.around(this.selection.turn, this.kind, this.selection.extent, this.selection.pointer));
    }

    turnTools(turn) {
      this.drop();
      this.current = turn;
      const rect = turn.open.getBoundingClientRect();
      const other = this.marked && this.marked !== turn;
      const types = this.types.filter(({ kind }) => kind === "turn" || (kind === "relation" && other)).map((type) => {
        const choice = this.choice(type);
        return type.kind === "relation" ? { ...choice, text: `${type.title}: from ${this.marked.name}` } : choice;
      });
      const relates = this.types.some(({ kind }) => kind === "relation");
      const mark = { text: this.marked === turn ? "Not the first turn" : "First turn of a relation", keys: this.keys.of("mark"), act: () => this.mark(turn) };
      const words = { text: "Select words", keys: this.keys.of("enter"), act: () => this.enter(turn) };
      const spans = turn.length > 0 && this.types.some(({ kind }) => kind === "span");
      this.view.openTools(turn, rect, `Label ${turn.name}`, [...types, ...(relates && !other ? [mark] : []), ...(spans ? [words] : [])]);
      this.view.tools.querySelector("button").focus();
      return true;
    }

    labelTools(target) {
      const label = this.view.labelOf.get(target);
      const end = (text, which, later) => ({ text, act: () => { this.stretch(label, which, later); this.openAgain(); } });
      const buttons = [{ text: "Delete", keys: this.keys.of("delete"), act: () => this.remove(label) }];
      if (kindOf(label) === "span") buttons.push(end("Start earlier", "start", -1), end("Start later", "start", 1), end("End earlier", "end", -1), end("End later", "end", 1));
      const { related } = target.dataset;
      if (related) buttons.push({ text: `Go to turn ${Number(related) + 1}`, act: () => this.focusTurn(this.view.byNumber.get(Number(related))) });
      this.drop();
      this.view.openTools(this.current, target.getBoundingClientRect(), this.view.describe(label), buttons);
    }

    openAgain() {
      if (this.view.labelOf.has(document.activeElement)) this.labelTools(document.activeElement);
    }

    // --- events ---

    listen() {
      this.root.addEventListener("keydown", (event) => {
        if (shortcuts.writes(event.target)) return;
        const action = this.keys.action(event);
        if (action && this.act(action, event.target)) event.preventDefault();
      });
      this.root.addEventListener("focusin", ({ target }) => this.focused(target));
      this.root.addEventListener("click", ({ target }) => {
        const label = target.closest(".label-button");
        if (label) this.labelTools(label);
      });
      for (const [type, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
        this.root.addEventListener(type, ({ target }) => this.relate(target.closest?.(".label-button"), on));
      }
      this.view.tools.addEventListener("mousedown", (event) => event.preventDefault()); // the words stay selected
      wordSelection.follow(this.root, {
        begin: () => this.drop(),
        end: (pointer, free) => this.take(pointer, free),
        spared: (target) => this.view.tools.contains(target) || Boolean(target.closest?.("button")),
      });
    }

    focused(target) {
      const turn = this.turnAt(target);
      if (!turn) return;
      if (turn !== this.current) {
        this.view.reach(this.current, false);
        this.current = turn;
      }
      this.view.reach(turn, true);
    }

    // Shows what a label that has the focus or the pointer belongs to.
    relate(button, on) {
      if (!button) return;
      this.view.byNumber.get(Number(button.dataset.related))?.item.classList.toggle("is-related", on);
      for (const mark of this.root.querySelectorAll(".label-mark")) if (this.view.labelOf.get(mark) === this.view.labelOf.get(button)) mark.classList.toggle("is-active", on);
    }
  }

  const known = new WeakSet();
  function start() {
    for (const root of document.querySelectorAll("[data-annotatable]")) {
      if (known.has(root)) continue;
      known.add(root);
      new Annotatable(root);
    }
  }
  document.addEventListener("htmx:afterSettle", start);
  start();
})();
