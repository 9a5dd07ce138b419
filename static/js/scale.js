// Judging by keyboard: a digit chooses that value in the focused row of a scale; the browser handles arrows.
(() => {
  "use strict";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !/^[0-9]$/.test(event.key)) return;
    const row = event.target.closest?.("[data-scale]");
    if (!row || (event.target.matches("input") && event.target.type !== "radio")) return;
    const choice = row.querySelector(`input[type=radio][value="${event.key}"]`) ||
      row.querySelector(`input[type=radio][value="-${event.key}"]`);
    if (!choice) return;
    choice.checked = true;
    choice.focus();
    event.preventDefault();
  });
})();
