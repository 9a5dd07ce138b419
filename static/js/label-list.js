// The labels of a conversation as a person changes them, and the suggestions that wait for an answer.
const labelList = (() => {
  "use strict";

  // The list behind an element as annotatable.js describes it. What extends it gives `handlers` to the view, asks for values
  // with its `tools`, and knows the `current` turn and the `selection`.
  class LabelList {
    constructor(root) {
      this.root = root;
      this.field = root.querySelector("input[type=hidden][name=labels]");
      this.changes = changes.of(this.field.form ?? root);
      const offered = JSON.parse(root.dataset.types || "[]");
      const actions = JSON.parse(root.closest("[data-actions]")?.dataset.actions ?? "[]");
      const labelActions = offered.map(({ name, title, key }) => ({ name: `label:${name}`, title, keys: key ? [key] : [] }));
      this.keys = shortcuts.bind([...actions, ...labelActions], JSON.parse(root.dataset.keys || "{}"));
      this.typeOf = labelRules.typesOf(offered);
      this.types = offered.map((type) => this.typeOf(type.name));
      this.view = new labelView.View(root, { types: this.types, typeOf: this.typeOf, keysOf: this.keys.of, ...this.handlers });
      [this.current] = this.view.turns;
    }

    // --- the list ---

    // Reads what the fields have, at first and when they were changed from outside.
    load() {
      let list = null;
      try { list = JSON.parse(this.field.value || "[]"); } catch { /* reported below */ }
      this.broken = !Array.isArray(list);
      if (this.broken) this.view.note("The stored labels cannot be read. They are kept as they are, and nothing can be labelled here.");
      this.list = this.broken ? [] : list;
      this.lengths = new Map(this.view.turns.map((turn) => [turn.number, turn.exact ? turn.length : -1]));
      const lost = this.list.filter((label) => !labelRules.fits(label, this.lengths));
      if (lost.length) this.view.note(`${lost.length} stored ${lost.length === 1 ? "label has" : "labels have"} no place in these turns and cannot be shown: ${lost.map((label) => JSON.stringify(label)).join(", ")}. They are kept.`);
      this.suggested = JSON.parse(this.root.dataset.suggestions || "[]").filter((label) => labelRules.fits(label, this.lengths));
      this.dismissals = this.field.form?.elements.namedItem("dismissed") ?? null;
      this.dismissed = new Set(JSON.parse(this.dismissals?.value || "[]"));
      for (const turn of this.view.turns) this.render(turn);
    }

    get shown() { return this.list.filter((label) => labelRules.fits(label, this.lengths)); }

    // The suggestions that a person has neither accepted, nor dismissed, nor labelled the same without them.
    get waiting() {
      const answered = (each) => this.list.some((label) => label?.suggestion === each.suggestion || (label && labelRules.same(label, each) && labelRules.words(this.typeOf(label.label), label.value) === labelRules.words(this.typeOf(label.label), each.value)));
      return this.suggested.filter((each) => !this.dismissed.has(each.suggestion) && !answered(each));
    }

    render(turn) { this.view.render(turn, this.shown, this.waiting, this); }

    change(list, sentence, focused = null) {
      const [before, after] = [this.list, labelRules.pruned(list, this.typeOf)];
      this.changes.add(() => this.set(before, `Undone: ${sentence}`), () => this.set(after, `Done again: ${sentence}`));
      this.set(after, sentence, focused);
    }

    // After every change, undone and redone ones too: turns are shown anew, the focus stays, the field has the list.
    set(list, sentence, focused = null) {
      const before = this.list;
      this.list = list;
      const changed = [...before.filter((label) => !list.includes(label)), ...list.filter((label) => !before.includes(label))];
      this.shownAnew(new Set(changed.flatMap((label) => [label.turn, label.other_turn])), focused);
      this.field.value = JSON.stringify(list);
      this.field.dispatchEvent(new Event("change", { bubbles: true }));
      this.view.say(sentence);
    }

    shownAnew(numbers, focused = null) {
      const held = document.activeElement;
      const inside = this.root.contains(held) && (this.view.labelOf.has(held) || this.view.tools.contains(held));
      this.view.closeTools();
      for (const turn of this.view.turns) if (numbers.has(turn.number)) this.render(turn);
      if (focused) this.focusLabel(focused);
      else if (inside && !held.isConnected) (this.selection?.turn.body ?? this.current.item).focus();
      if (this.selection) this.selection.show();
    }

    settle() {
      this.view.undo.ariaDisabled = String(!this.changes.canUndo);
      this.view.redo.ariaDisabled = String(!this.changes.canRedo);
    }

    // Adds a label, and asks for what belongs to it; whether it was added.
    add(label, ask = true) {
      const type = this.typeOf(label.label);
      const refusal = labelRules.refused(label, this.shown, type);
      if (refusal) return this.refuse(refusal, type);
      this.change([...this.list, label], `${this.view.describe(label)}.`);
      if (ask) this.ask(label);
      return true;
    }

    // Opens the first detail of a label that has no value yet; whether there is one.
    ask(label) {
      const open = labelRules.details(label, this.shown, this.types).find((detail) => !detail.label);
      if (open) this.tools.value(open.type, label);
      return Boolean(open);
    }

    refuse({ why, label }, type) {
      if (why === "twin") this.view.say(`Already labelled: ${this.view.describe(label)}.`, true);
      else this.view.say(`“${type.title}” may not overlap another “${type.title}”: ${this.view.byNumber.get(label.turn).quote(label.start, label.end)} in turn ${label.turn + 1} has that label. Nothing was changed.`, true);
      return false;
    }

    remove(label) {
      const turn = this.current;
      const at = this.view.buttonsOf(turn).findIndex((each) => this.view.labelOf.get(each) === label);
      this.change(this.list.filter((other) => other !== label), `Deleted: ${this.view.describe(label)}.`);
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
      return this.change(labelRules.moved(this.list, label, moved), `${this.view.describe(moved)}.`, moved);
    }

    // Gives a label another type where it stands; what was said about it stays where the new type asks for it.
    retype(label, type) {
      if (type.name === label.label) return this.view.say(`It is ${type.title}.`);
      const { value, ...bare } = label;
      const made = { ...bare, label: type.name };
      const refusal = labelRules.refused(made, this.shown.filter((other) => other !== label), type);
      if (refusal) return this.refuse(refusal, type);
      if (labelRules.hasValue(type)) return this.tools.value(type, label, label.suggestion ?? null);
      this.change(this.list.map((other) => (other === label ? made : other)), `${this.view.describe(made)}.`, made);
      return this.ask(made);
    }

    // Sets the value of a type at a place; null takes the label away. `open`: the tools stay.
    put(type, place, value, suggestion = null, open = false) {
      const stored = this.list.find((label) => label.label === type.name && labelRules.samePlace(label, place));
      const made = { label: type.name, ...place, value, ...(suggestion === null ? {} : { suggestion }) };
      if (value === null) {
        if (stored) this.change(this.list.filter((label) => label !== stored), `Deleted: ${this.view.describe(stored)}.`);
      } else this.change(stored ? this.list.map((label) => (label === stored ? made : label)) : [...this.list, made], `${this.view.describe(made)}.`);
      if (!open) this.after(type, place);
    }

    // When a value was chosen: the next detail of the same label, or back to where it belongs.
    after(type, place) {
      const bearer = this.shown.find((label) => labelRules.samePlace(label, place) && this.typeOf(label.label).mark !== "detail");
      if (type.mark === "detail" && bearer && this.ask(bearer)) return;
      this.view.closeTools();
      if (type.mark === "detail" && bearer) this.focusLabel(bearer);
      else this.focusTurn(this.view.byNumber.get(place.turn));
    }

    step(way) {
      if (!this.changes.step(way)) this.view.say(`Nothing to ${way}.`);
    }

    // --- suggestions ---

    // Takes a suggestion over, with another type if it is corrected.
    accept({ source, score, ...label }, type = this.typeOf(label.label, labelRules.kindOf(label))) {
      const { value, ...bare } = { ...label, label: type.name };
      if (!labelRules.hasValue(type)) return this.add(bare);
      if (type.name !== label.label) return this.tools.value(type, bare, label.suggestion);
      if (!labelRules.pruned([...this.list, { ...bare, value }], this.typeOf).some((each) => labelRules.same(each, bare))) {
        return this.view.say(`“${type.title}” is said about ${this.typeOf(type.when[0]).title}: label that first.`, true);
      }
      return this.put(type, labelRules.placeOf(label), value, label.suggestion);
    }

    dismiss(suggested) {
      const set = (dismissed, sentence) => {
        if (dismissed) this.dismissed.add(suggested.suggestion);
        else this.dismissed.delete(suggested.suggestion);
        this.shownAnew(new Set([suggested.turn, suggested.other_turn]));
        if (this.dismissals) {
          this.dismissals.value = JSON.stringify([...this.dismissed]);
          this.dismissals.dispatchEvent(new Event("change", { bubbles: true }));
        }
        this.view.say(sentence);
      };
      const what = this.view.describe(suggested);
      this.changes.add(() => set(false, `Suggested again: ${what}.`), () => set(true, `Dismissed: ${what}.`));
      set(true, `Dismissed: ${what}.`);
    }
  }

  return { LabelList };
})();
