// What a person has entered and not saved yet, kept on this device under a name for the person and the target.
const drafts = (() => {
  "use strict";
  const MOST = 200; // older ones go
  const PREFIX = "draft:";

  // The fields of a form as {name: [value, …]}: those that are checked, and all others.
  function read(form) {
    const fields = {};
    for (const [name, value] of new FormData(form)) if (!["csrfmiddlewaretoken", "seconds"].includes(name)) (fields[name] ??= []).push(value);
    return fields;
  }

  // Fills a form with fields as `read` returned them.
  function write(form, fields) {
    for (const control of form.elements) {
      if (!control.name || ["csrfmiddlewaretoken", "seconds", "target"].includes(control.name) || control.type === "submit") continue;
      const values = fields[control.name] ?? [];
      if (["radio", "checkbox"].includes(control.type)) control.checked = values.includes(control.value);
      else control.value = values[0] ?? "";
    }
  }

  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function load(name) {
    try { return JSON.parse(localStorage.getItem(name)); } catch { return null; }
  }

  // A device without room, or that keeps nothing, has no drafts; the page works without.
  function keep(name, fields, seconds) {
    try {
      localStorage.setItem(name, JSON.stringify({ fields, seconds, at: Date.now() }));
      const names = Object.keys(localStorage).filter((each) => each.startsWith(PREFIX));
      if (names.length > MOST) names.map((each) => [load(each)?.at ?? 0, each]).sort(([a], [b]) => a - b).slice(0, names.length - MOST).forEach(([, each]) => localStorage.removeItem(each));
    } catch { /* no room */ }
  }

  function drop(name) {
    try { localStorage.removeItem(name); } catch { /* nothing is kept */ }
  }

  return { read, write, same, load, keep, drop };
})();
