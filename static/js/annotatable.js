// Labels of words, turns and pairs of turns, by keyboard, pointer or touch: what [data-annotatable] holds.
//
// <div data-annotatable data-types='[…]' data-suggestions='[…]' data-keys='{"next": "n"}'>, it or an element around it with
//   data-actions='[{name, title, keys, fixed}]' (webapp/judgments/annotating/keys.py), holds
//   an <ol> of <li data-turn="4">, with an .author if the turn has one, and the text in
//     <span class="utterance" dir="auto" data-text data-length="12">: exactly as stored, of so many code points, and
//   <input type="hidden" name="labels">: a JSON list of what label-rules.js describes. It has every change at once, and then
//     fires `change`.
// A type is {name, title, kind, about, colour, shape, key, overlap, options, low, high, meanings, when} as in a codebook:
// `colour` is 0 to 7, `key` as in shortcuts.js. A span of a type with `overlap` false does not overlap another of that type. A
// suggestion is a label with its id (`suggestion`), `source` and `score`. `data-keys` has a person's own keys by the name of
// an action or "label:" and the name of a type. Where the length differs, words of that turn cannot be labelled.
const annotatable = (() => {
  "use strict";
  const { kindOf } = labelRules;

  class Annotatable extends labelList.LabelList {
    constructor(root) {
      super(root);
      this.tools = new labelTools.Tools(this);
      this.kind = "word";
      [this.marked, this.selection, this.brush] = [null, null, null];
      for (const problem of this.keys.problems) this.view.note(problem);
      this.load();
      this.changes.listen(() => this.settle());
      this.listen();
    }

    get handlers() { return { press: (action, turn) => this.press(action, turn), paint: (type) => this.paint(type) }; }

    // Goes to the next suggestion behind the current turn, in the order of the conversation.
    toSuggestion() {
      const all = this.view.turns.flatMap((turn) => this.view.buttonsOf(turn)).filter((each) => "source" in this.view.labelOf.get(each));
      const held = all.indexOf(document.activeElement);
      const behind = all.findIndex((each) => this.view.turns.indexOf(this.turnAt(each)) >= this.view.turns.indexOf(this.current));
      const next = all[held >= 0 ? (held + 1) % all.length : Math.max(0, behind)];
      if (next) next.focus();
      else this.view.say("Nothing is suggested here any more.");
    }

    // --- labels ---

    // What a label's key or button does: at a label, to it; else to the selected words, or the turn.
    apply(type, target = null) {
      if (this.broken) return this.view.say("Nothing can be labelled here: the stored labels cannot be read.", true);
      const label = this.view.labelOf.get(target);
      if (label && this.typeOf(label.label, kindOf(label)).mark === type.mark) return this.applyToLabel(type, label);
      if (type.mark === "detail") return this.applyDetail(type, label);
      if (type.mark === "span") return this.selection ? this.applyToWords(type) : this.paint(type);
      const turn = this.selection?.turn ?? this.current;
      if (type.mark === "turn") return labelRules.hasValue(type) ? this.tools.value(type, { turn: turn.number }) : this.add({ label: type.name, turn: turn.number });
      if (!this.marked) return this.view.say(`“${type.title}” relates two turns: mark the first (${this.keys.of("mark")[0] ?? "Label turn"}), then go to the second.`, true);
      if (this.marked === turn) return this.view.say(`“${type.title}” relates two turns: go to the second one.`, true);
      const first = this.marked;
      this.marked = null;
      this.render(first);
      return this.add({ label: type.name, turn: first.number, other_turn: turn.number });
    }

    // Corrects a suggestion, or changes a label in place.
    applyToLabel(type, label) {
      if (labelRules.hasValue(type)) return this.tools.value(type, label, label.suggestion ?? null);
      return "source" in label ? this.accept(label, type) : this.retype(label, type);
    }

    applyDetail(type, label) {
      const bearer = label ?? this.shown.findLast((each) => each.turn === this.current.number && labelRules.details(each, this.shown, this.types).some((detail) => detail.type === type));
      if (bearer && labelRules.details(bearer, this.shown, this.types).some((detail) => detail.type === type)) return this.tools.value(type, bearer);
      return this.view.say(`“${type.title}” is said about ${this.typeOf(type.when[0]).title}: go to one first.`, true);
    }

    applyToWords(type) {
      const { turn, pointer } = this.selection;
      const [start, end] = this.selection.extent;
      const label = { label: type.name, turn: turn.number, start, end };
      if (!this.add(label, this.brush === null)) return; // refused: the words stay selected
      if (pointer) this.drop();
      else if (!this.view.tools.isConnected && this.brush === null) this.openWords();
    }

    // Activates or deactivates a type: while it is active, each selection of words or turns gets its label.
    paint(type) {
      if (this.selection && type?.mark === "span" && this.brush === null) return this.applyToWords(type);
      this.brush = this.brush === type ? null : type;
      this.view.painting(this.brush);
      this.view.closeTools();
      if (this.brush === null) return this.view.say("No label is active.");
      const what = { span: "the words that you select get it", turn: "the turns that you choose get it", relation: "each two turns that you choose get it" }[type.mark];
      return this.view.say(`“${type.title}” is active: ${what}. Esc deactivates it.`);
    }

    paintTurn(turn) {
      this.current = turn;
      if (this.brush.mark === "relation" && !this.marked) this.mark(turn);
      else this.apply(this.brush);
    }

    // --- the selection ---

    select(selection) {
      this.selection = selection;
      const { turn, pointer, extent: [start, end] } = selection;
      const within = this.shown.filter((label) => kindOf(label) === "span" && label.turn === turn.number && label.start < end && start < label.end);
      const inside = within.length ? ` (in ${within.map((label) => this.typeOf(label.label, "span").title).join(", ")})` : "";
      this.view.say(`${pointer ? "Selected: " : ""}${turn.quote(start, end)}${inside}`);
      selection.show();
      if (pointer && this.brush?.mark === "span") this.applyToWords(this.brush);
      else if (this.brush === null) this.openWords();
    }

    openWords() { this.tools.words(this.selection); }

    choice(type) { return { type, text: type.title, keys: this.keys.of(`label:${type.name}`), act: () => this.apply(type) }; }

    drop() {
      if (!this.selection) return;
      this.selection = null;
      this.view.closeTools();
      getSelection().removeAllRanges();
    }

    // Whether a tap goes on with the words that a button or the keys have selected: a finger has no handles on them.
    reaches(target, pointer) { return pointer === "touch" && this.selection?.pointer === "" && this.selection.turn.body.contains(target); }

    reach(x, y) {
      const offset = wordSelection.offsetAt(this.selection.turn, x, y);
      if (offset !== null) this.select(this.selection.upTo(offset));
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

    enterOrPaint(turn) {
      if (this.brush && this.brush.mark !== "span") this.paintTurn(turn);
      else this.enter(turn);
    }

    // --- what a key or button does; true if the key was used ---

    press(action, turn = this.current) {
      if (action === "turn-tools") {
        this.drop();
        this.current = turn;
        this.tools.turn(turn);
      }
      if (action === "undo" || action === "redo") this.step(action);
      else if (action === "whole-words") this.toggle();
      else if (action === "leave") this.leave();
      return true;
    }

    act(action, target) {
      if (action.startsWith("label:")) this.apply(this.typeOf(action.slice(6)), target);
      else if (["undo", "redo", "whole-words"].includes(action)) this.press(action);
      else if (action === "next" || action === "previous") this.go(action === "next" ? 1 : -1, target);
      else if (action === "leave") return this.leave();
      else if (action === "mark") this.mark(this.current);
      else if (action === "suggestion") this.toSuggestion();
      else if (action === "accept" || action === "dismiss") this.answer(action, target);
      else if (action === "enter" && target === this.current?.item) this.enterOrPaint(this.current);
      else if (this.view.labelOf.has(target)) return this.actOnLabel(action, this.view.labelOf.get(target), target);
      else if (this.view.tools.contains(target)) return this.actOnTools(action, target);
      else if (target === this.selection?.turn.body) return this.actOnWords(action);
      else return false;
      return true;
    }

    // Answers the suggestion that has the focus, or the first one of the turn.
    answer(action, target) {
      const button = [target, ...this.view.buttonsOf(this.current)].find((each) => "source" in (this.view.labelOf.get(each) ?? {}));
      if (button) this[action](this.view.labelOf.get(button));
      else this.view.say("Nothing is suggested here.", true);
    }

    actOnTools(action, target) {
      const beside = { right: target.nextElementSibling, left: target.previousElementSibling }[action];
      if (beside?.matches("button")) beside.focus();
      return beside !== undefined;
    }

    actOnWords(action) {
      const flip = this.selection.turn.rightToLeft ? -1 : 1;
      const far = this.selection.turn.length;
      if (action === "enter" && this.brush?.mark === "span") {
        this.applyToWords(this.brush);
        return true;
      }
      const by = { right: flip, left: -flip, first: -far, last: far }[action.replace("extend-", "")];
      if (by === undefined) return false;
      this.select(this.selection.moved(by, action.startsWith("extend-")));
      return true;
    }

    actOnLabel(action, label, target) {
      const flip = this.current.rightToLeft ? -1 : 1;
      const ends = { "end-right": ["end", flip], "end-left": ["end", -flip], "start-earlier": ["start", -1], "start-later": ["start", 1] };
      if (action === "delete") this["source" in label ? "dismiss" : "remove"](label);
      else if (ends[action] && kindOf(label) === "span" && !("source" in label)) this.stretch(label, ...ends[action]);
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
      if (!open && this.brush) return this.paint(this.brush) ?? true;
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

    // --- events ---

    listen() {
      this.root.addEventListener("keydown", (event) => {
        if (shortcuts.writes(event.target)) return;
        if (this.tools.digit(event)) return event.preventDefault();
        const action = this.keys.action(event);
        if (action && this.act(action, event.target)) event.preventDefault();
        return undefined;
      });
      this.root.addEventListener("focusin", ({ target }) => this.focused(target));
      this.root.addEventListener("click", ({ target, pointerType, clientX, clientY }) => {
        const label = target.closest(".label-button");
        if (label) this.tools.label(label);
        else if (this.reaches(target, pointerType)) this.reach(clientX, clientY);
        else if (this.brush && this.brush.mark !== "span" && !target.closest("button, .label-tools") && this.turnAt(target)) this.paintTurn(this.turnAt(target));
      });
      for (const [type, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
        this.root.addEventListener(type, ({ target }) => this.relate(target.closest?.(".label-button"), on));
      }
      this.view.tools.addEventListener("mousedown", (event) => event.preventDefault()); // the words stay selected
      wordSelection.follow(this.root, {
        begin: (target, pointer) => { if (!this.reaches(target, pointer)) this.drop(); },
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

  const known = new WeakMap();
  function start(within = document) {
    for (const root of within.querySelectorAll("[data-annotatable]")) if (!known.has(root)) known.set(root, new Annotatable(root));
  }
  document.addEventListener("htmx:afterSettle", () => start());
  start();

  return { start, of: (root) => known.get(root) };
})();
