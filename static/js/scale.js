// Judging by keyboard: a digit chooses that value in the focused row of a scale, or the option at that place; Delete takes the
// choice back. The browser handles arrows.
(() => {
  "use strict";
  document.addEventListener("keydown", (event) => {
    const digit = shortcuts.pressed(event);
    if (!/^([0-9]|Delete|Backspace)$/.test(digit)) return;
    const row = event.target.closest?.("[data-scale]");
    if (!row || (event.target.matches("input") && !["radio", "checkbox"].includes(event.target.type))) return;
    const choices = [...row.querySelectorAll("input")];
    const chosen = row.querySelector("input[type=radio]:checked");
    const numbers = choices.some(({ value }) => /^-?[0-9]+$/.test(value));
    const choice = digit.length > 1 ? chosen : numbers ? choices.find(({ value }) => value === digit) ?? choices.find(({ value }) => value === `-${digit}`) : choices[Number(digit) - 1];
    if (!choice) return;
    choice.checked = digit.length === 1 && (choice.type === "radio" || !choice.checked);
    choice.dispatchEvent(new Event("change", { bubbles: true }));
    choice.focus();
    event.preventDefault();
  });
})();
