// A new table: choosing another game, or number of seats, shows its scenarios and seats at once.
(() => {
  "use strict";
  const form = document.getElementById("choose-game");
  if (!form) return;
  form.querySelector("button").hidden = true;
  for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.submit());
})();
