// What a person has changed on a page, in order, so that it is undone and done again: answers and labels alike.
const changes = (() => {
  "use strict";
  const histories = new WeakMap();

  class History {
    #steps = [];
    #at = 0;
    #listeners = [];

    get canUndo() { return this.#at > 0; }
    get canRedo() { return this.#at < this.#steps.length; }

    // `undo` and `redo` change the page and say what they did.
    add(undo, redo) {
      this.#steps.splice(this.#at, Infinity, { undo, redo });
      this.#at += 1;
      this.#tell();
    }

    step(way) {
      if (!(way === "undo" ? this.canUndo : this.canRedo)) return false;
      const at = way === "undo" ? (this.#at -= 1) : this.#at++;
      this.#steps[at][way]();
      this.#tell();
      return true;
    }

    clear() {
      [this.#steps, this.#at] = [[], 0];
      this.#tell();
    }

    listen(listener) {
      this.#listeners.push(listener);
      listener();
    }

    #tell() { for (const listener of this.#listeners) listener(); }
  }

  // The history of a form, or of an element outside of any.
  function of(owner) {
    if (!histories.has(owner)) histories.set(owner, new History());
    return histories.get(owner);
  }

  return { of };
})();
