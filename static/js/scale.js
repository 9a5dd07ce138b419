// Judging by keyboard: a digit chooses that value in the focused row of a scale; the browser handles arrows.
(() => {
  "use strict";
  document.addEventListener("keydown", (event) => {
    const digit = shortcuts.pressed(event);
    if (!/^[0-9]$/.test(digit)) return;
    const row = event.target.closest?.("[data-scale]");
    if (!row || (event.target.matches("input") && event.target.type !== "radio")) return;
    const choice = row.querySelector(`input[type=radio][value="${digit}"]`) ||
      row.querySelector(`input[type=radio][value="-${digit}"]`);
    if (!choice) return;
    choice.checked = true;
    choice.focus();
    event.preventDefault();
  });
})();
