// Deciding by keyboard: a digit takes that annotator's label in the row, or 0 decides otherwise; an own value chooses 0 in
// its row; a button takes all labels of one annotator; Ctrl+Enter saves.
(() => {
  "use strict";
  const form = document.querySelector("form[data-decide]");
  if (!form) return;
  const rows = [...form.querySelectorAll("tr[data-row]")];
  const choice = (row, value) => [...row.querySelectorAll("input[type=radio]")].find((radio) => !radio.closest("[data-own]") && radio.value === value);

  for (const button of form.querySelectorAll("[data-all]")) {
    button.addEventListener("click", () => {
      for (const row of rows) {
        const radio = choice(row, button.dataset.all);
        if (radio) radio.checked = true;
      }
    });
  }
  form.addEventListener("change", (event) => {
    const own = event.target.closest("[data-own]");
    if (own) choice(own.closest("tr"), "0").checked = true;
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) return form.requestSubmit();
    const row = event.target.closest("tr[data-row]");
    const digit = shortcuts.pressed(event);
    if (!row || !/^[0-9]$/.test(digit) || event.target.closest("[data-own]")) return undefined;
    const radio = choice(row, digit);
    if (!radio) return undefined;
    radio.checked = true;
    radio.focus();
    return event.preventDefault();
  });
  const open = rows.find((row) => ![...row.querySelectorAll("input[type=radio]:checked")].some((radio) => !radio.closest("[data-own]")));
  (open ?? rows[0])?.querySelector("input[type=radio]")?.focus();
})();
