// Keys of a page: which action a press means, and which keys cannot be had because another action has them.
//
// A shortcut is KeyboardEvent.key with its modifiers before it: "j", "Ctrl+Shift+z", "Shift+Alt+ArrowLeft". The Command key
// of a Mac counts as Ctrl. Shift stands beside letters and named keys only: "?" is "?", wherever the layout has it.
const shortcuts = (() => {
  "use strict";
  const SHOWN = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", " ": "Space" };
  // Keys that every page has (palette.js), and those without which nobody can leave a place or press a button.
  const TAKEN = { "/": "the search", "?": "the list of keys", "Ctrl+k": "the search", Tab: "the browser", "Shift+Tab": "the browser", " ": "the browser" };
  const MODIFIERS = ["Ctrl", "Alt", "Shift"];

  const isLetter = (key) => [...key].length === 1 && key.toLowerCase() !== key.toUpperCase();
  const PRESSED = "[type=radio], [type=checkbox], [type=button], [type=submit]"; // fields that nobody writes in
  const writes = (element) => element.closest?.(`input:not(${PRESSED}), textarea, select, [contenteditable]`) !== null;

  function name(key, { ctrl, alt, shift }) {
    const character = [...key].length === 1;
    const held = [ctrl && "Ctrl", alt && "Alt", shift && (!character || isLetter(key)) && "Shift"].filter(Boolean);
    return [...held, character ? key.toLowerCase() : key].join("+");
  }

  // The shortcut of an event; "" while an input method composes.
  function pressed(event) {
    if (event.isComposing) return "";
    const third = event.getModifierState("AltGraph"); // a layout's third level, which is no modifier
    return name(event.key, { ctrl: (event.ctrlKey || event.metaKey) && !third, alt: event.altKey && !third, shift: event.shiftKey });
  }

  // A shortcut as somebody wrote it, in one spelling; null if it is none.
  function read(written) {
    if (typeof written !== "string" || written === "") return null;
    const parts = written === "+" || written.endsWith("++") ? [...written.slice(0, -1).split("+").filter(Boolean), "+"] : written.split("+");
    const key = parts.pop();
    if (key === "" || parts.some((part) => !MODIFIERS.includes(part))) return null;
    if ([...key].length > 1 && !/^(Arrow(Up|Down|Left|Right)|Enter|Escape|Delete|Backspace|Home|End|PageUp|PageDown|Tab|F\d\d?)$/.test(key)) return null;
    return name(key, { ctrl: parts.includes("Ctrl"), alt: parts.includes("Alt"), shift: parts.includes("Shift") });
  }

  const shown = (shortcut) => {
    const plus = shortcut.endsWith("++") || shortcut === "+";
    return [...(plus ? shortcut.slice(0, -1).split("+").filter(Boolean) : shortcut.split("+").slice(0, -1)), plus ? "+" : shortcut.split("+").at(-1)]
      .map((part) => SHOWN[part] ?? (isLetter(part) ? part.toUpperCase() : part)).join(" + ");
  };

  // Binds actions, each { name, title, keys, fixed }, to keys. `chosen` has a person's keys by the name of an action, a text
  // or a list of texts. What clashes is refused with a sentence in `problems`: an action whose chosen key is taken keeps the
  // usual one, and of two actions with the same usual key the earlier has it.
  function bind(actions, chosen = {}) {
    const problems = [];
    const wanted = new Map();
    for (const { name: action, keys } of actions) wanted.set(action, keys.map(read));
    const byName = new Map(actions.map((action) => [action.name, action]));
    for (const [action, keys] of Object.entries(chosen ?? {})) {
      const known = byName.get(action);
      const shortcut = [keys].flat().map(read);
      if (!known) problems.push(`No action here is called “${action}”; its keys are not used.`);
      else if (known.fixed) problems.push(`The keys of “${known.title}” cannot be changed.`);
      else if (shortcut.length === 0 || shortcut.includes(null)) problems.push(`“${[keys].flat().join(", ")}” is no key; “${known.title}” keeps ${wanted.get(action).map(shown).join(", ") || "none"}.`);
      else wanted.set(action, shortcut);
    }
    const isChosen = (action) => wanted.get(action.name).some((key) => !action.keys.map(read).includes(key));
    // A chosen key that another action has, or wants as well, is refused before anything is bound.
    const asking = (key) => actions.filter((action) => wanted.get(action.name).includes(key));
    const clashes = actions.filter(isChosen).map((action) => {
      const key = wanted.get(action.name).find((each) => TAKEN[each] || asking(each).length > 1);
      return { action, clash: key, other: TAKEN[key] ?? (key && `“${asking(key).find((each) => each !== action).title}”`) };
    }).filter(({ other }) => other);
    for (const { action, clash, other } of clashes) {
      const usual = action.keys.map(read);
      problems.push(`${shown(clash)} cannot be the key of “${action.title}”: ${other} has it. “${action.title}” keeps ${usual.map((key) => shown(key ?? "")).join(", ") || "no key"}.`);
      wanted.set(action.name, usual);
    }
    const bound = new Map();
    for (const action of actions) {
      wanted.set(action.name, wanted.get(action.name).filter((key) => {
        const other = TAKEN[key] ?? (bound.has(key) ? `“${byName.get(bound.get(key)).title}”` : "");
        if (key !== null && !other) bound.set(key, action.name);
        else problems.push(key === null ? `“${action.title}” has a key that does not exist.` : `${shown(key)} cannot be the key of “${action.title}”: ${other} has it. “${action.title}” has no key.`);
        return key !== null && !other;
      }));
    }
    return {
      problems,
      action: (event) => bound.get(pressed(event)),
      of: (action) => (wanted.get(action) ?? []).map(shown),
    };
  }

  return { bind, pressed, read, shown, writes };
})();
