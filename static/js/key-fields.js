// Fields of keys: a press is written into the field, and a key that another action has is reported at once.
(() => {
  "use strict";
  const form = document.querySelector("[data-key-fields]");
  const clash = form.querySelector(".key-clash");
  const actions = JSON.parse(form.dataset.actions);
  const fields = [...form.querySelectorAll("input[data-key]")];
  const LEFT_ALONE = new Set(["Tab", "Shift+Tab", "Enter", "Backspace", "Delete", "ArrowLeft", "ArrowRight", "Escape"]);

  function check() {
    const labels = fields.filter(({ dataset }) => dataset.key.startsWith("label:"))
      .map(({ dataset, placeholder }) => ({ name: dataset.key, title: dataset.title, keys: [placeholder] }));
    const entered = fields.filter(({ value }) => value.trim()).map(({ dataset, value }) => [dataset.key, value.trim().split(/\s+/)]);
    const codebooks = [...new Set(labels.map(({ name }) => name.split(":")[1]))];
    const problems = (codebooks.length ? codebooks : [""]).flatMap((codebook) => {
      const offered = [...actions, ...labels.filter(({ name }) => name.startsWith(`label:${codebook}:`))];
      const names = new Set(offered.map(({ name }) => name));
      return shortcuts.bind(offered, Object.fromEntries(entered.filter(([name]) => names.has(name)))).problems;
    });
    clash.textContent = [...new Set(problems)].join(" ");
  }

  for (const field of fields) {
    field.addEventListener("keydown", (event) => {
      const key = shortcuts.pressed(event);
      if (!key || LEFT_ALONE.has(key) || ["Control", "Shift", "Alt", "Meta", "AltGraph", "Dead"].includes(event.key)) return;
      if (key === " ") return; // between two keys of one action
      event.preventDefault();
      const kept = field.value.endsWith(" ") ? field.value : "";
      field.value = `${kept}${key}`;
      check();
    });
    field.addEventListener("input", check);
  }
})();
