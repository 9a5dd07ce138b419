// The form of one target: every change of it is undone and done again, a draft is kept, and a question is asked only where its
// condition holds. Suggestions beside questions are accepted by a press, never by themselves.
const judgingForm = (() => {
  "use strict";

  class JudgingForm {
    constructor(article) {
      this.article = article;
      this.form = article.querySelector("form.judging");
      this.name = article.dataset.draft;
      this.said = this.form.querySelector(".judging-said");
      this.changes = changes.of(this.form);
      annotatable.start(article);
      ranking.start(article);
      this.initial = drafts.read(this.form);
      this.seconds = 0;
      this.#restore();
      this.fields = drafts.read(this.form);
      this.#ask();
      this.#suggestions();
      // on the article: the list of labels belongs to the form, and stands outside of it
      article.addEventListener("change", ({ target }) => this.#changed(target));
      article.addEventListener("input", () => this.keep());
    }

    get annotatable() { return annotatable.of(this.article.querySelector("[data-annotatable]")); }
    say(sentence, refused = false) {
      this.said.classList.toggle("problem", refused);
      this.said.replaceChildren(sentence);
    }

    // --- the draft ---

    keep() {
      const fields = drafts.read(this.form);
      if (drafts.same(fields, this.initial)) drafts.drop(this.name);
      else drafts.keep(this.name, fields, this.seconds);
    }

    #restore() {
      const draft = drafts.load(this.name);
      if (!draft || drafts.same(draft.fields, this.initial)) return;
      this.#fill(draft.fields);
      this.seconds = draft.seconds || 0;
      const note = document.createElement("p");
      note.className = "note draft-note";
      note.setAttribute("role", "status");
      const discard = document.createElement("button");
      Object.assign(discard, { type: "button", className: "small secondary", textContent: "Discard it" });
      discard.addEventListener("click", () => {
        const before = drafts.read(this.form);
        this.#step(before, this.initial, "Your draft was discarded");
        note.remove();
        this.article.querySelector("h2").focus();
      });
      note.append("Restored your draft. It is not saved yet. ", discard);
      this.form.prepend(note);
    }

    saved() { drafts.drop(this.name); }

    // --- changes ---

    #fill(fields) {
      drafts.write(this.form, fields);
      for (const input of this.form.querySelectorAll("[data-ranking]")) ranking.show(input);
      this.annotatable?.load();
    }

    // Sets all fields, and lets it be undone.
    #step(before, after, sentence) {
      const set = (fields, said) => {
        this.#fill(fields);
        this.#settle();
        this.say(said);
      };
      this.changes.add(() => set(before, `Undone: ${sentence}.`), () => set(after, `Done again: ${sentence}.`));
      set(after, `${sentence}.`);
    }

    #settle() {
      this.fields = drafts.read(this.form);
      this.#ask();
      this.#suggestions();
      this.keep();
    }

    #changed(control) {
      const [before, after] = [this.fields, drafts.read(this.form)];
      if (["labels", "dismissed"].includes(control.name)) { // annotatable.js undoes these by itself
        this.fields = after;
        this.#ask();
        return this.keep();
      }
      if (drafts.same(before, after)) return undefined;
      const only = Object.fromEntries([...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => !drafts.same(before[name], after[name])).map((name) => [name, [before[name], after[name]]]));
      const put = (side, said) => {
        const fields = drafts.read(this.form);
        for (const [name, sides] of Object.entries(only)) fields[name] = sides[side] ?? [];
        drafts.write(this.form, fields);
        for (const input of this.form.querySelectorAll("[data-ranking]")) ranking.show(input);
        this.#settle();
        this.say(said);
      };
      const what = this.#describe(control);
      this.changes.add(() => put(0, `Undone: ${what}.`), () => put(1, `Done again: ${what}.`));
      this.say("");
      return this.#settle();
    }

    #describe(control) {
      const question = control.closest("fieldset")?.querySelector("legend")?.textContent.trim() ?? control.labels?.[0]?.textContent.trim() ?? control.name;
      const chosen = ["radio", "checkbox"].includes(control.type) && control.closest("fieldset") ? control.labels[0].textContent.trim() : "";
      return chosen ? `${question}: ${chosen}` : question;
    }

    undo(way) {
      if (!this.changes.step(way)) this.say(`Nothing to ${way}.`);
    }

    // --- questions ---

    // Hides questions whose condition does not hold; what is hidden is not sent.
    #ask() {
      for (const row of this.form.querySelectorAll("fieldset[data-when]")) {
        const [name, equals] = JSON.parse(row.dataset.when);
        const values = this.#valuesOf(row.dataset.prefix, name);
        const wanted = typeof equals === "boolean" ? (equals ? "1" : "0") : equals;
        row.hidden = !(equals === null ? values.length : values.includes(wanted));
        row.disabled = row.hidden;
      }
    }

    #valuesOf(prefix, name) {
      const inForm = [...this.form.elements].filter((control) => [`${prefix}-${name}`, `value-${name}`].includes(control.name) && !control.matches(":disabled"));
      const chosen = inForm.filter((control) => !["radio", "checkbox"].includes(control.type) || control.checked).map(({ value }) => value).filter(Boolean);
      const marked = (this.annotatable?.list ?? []).filter((label) => label?.label === name).map(({ value = true }) => (value === true ? "1" : String(value)));
      return [...chosen, ...marked];
    }

    // The next question that needs an answer, behind the one that has the focus; once none does, the next one.
    question() {
      const rows = [...this.form.querySelectorAll("fieldset.question-row:not([hidden])")];
      const held = rows.findIndex((row) => row.contains(document.activeElement));
      const ordered = [...rows.slice(held + 1), ...rows.slice(0, held + 1)];
      const row = ordered.find((each) => !this.#answered(each) && each.querySelector(":required")) ?? ordered[0];
      const control = row?.querySelector("input:checked") ?? row?.querySelector("input, textarea, select");
      if (control) control.focus();
      else this.say("Nothing is asked here.");
    }

    #answered(row) {
      return [...row.querySelectorAll("input, textarea")].some((control) => (["radio", "checkbox"].includes(control.type) ? control.checked : control.value.trim() !== ""));
    }

    // --- suggestions beside questions ---

    #suggestions() {
      const dismissed = new Set(JSON.parse(this.form.elements.namedItem("dismissed").value || "[]"));
      for (const line of this.form.querySelectorAll("[data-suggested]")) {
        const id = `${line.dataset.field}-suggestion`;
        let accepted = this.form.elements.namedItem(id);
        if (!accepted) {
          accepted = Object.assign(document.createElement("input"), { type: "hidden", name: id });
          line.append(accepted);
          for (const button of line.querySelectorAll("button")) button.hidden = false;
          line.querySelector("[data-accept]").addEventListener("click", () => this.#accept(line, accepted));
          line.querySelector("[data-dismiss]").addEventListener("click", () => this.#dismiss(line));
          this.fields = drafts.read(this.form);
          if (!this.initial[id]) this.initial = { ...this.initial, [id]: [""] };
        }
        line.hidden = dismissed.has(Number(line.dataset.pk));
        line.classList.toggle("is-accepted", accepted.value !== "");
      }
    }

    #accept(line, accepted) {
      const fields = drafts.read(this.form);
      const value = JSON.parse(line.dataset.suggested);
      const title = line.closest("fieldset").querySelector("legend").textContent.trim();
      const after = { ...fields, [line.dataset.field]: [value].flat(), [accepted.name]: [line.dataset.pk] };
      this.#step(fields, after, `Accepted: ${title}`);
    }

    #dismiss(line) {
      const fields = drafts.read(this.form);
      const dismissed = JSON.parse(fields.dismissed?.[0] || "[]");
      const title = line.closest("fieldset").querySelector("legend").textContent.trim();
      this.#step(fields, { ...fields, dismissed: [JSON.stringify([...dismissed, Number(line.dataset.pk)])], [`${line.dataset.field}-suggestion`]: [""] }, `Dismissed: ${title}`);
    }
  }

  return { JudgingForm };
})();
