// A new table: choosing a game or a number of seats immediately shows its scenarios and seats.
(() => {
  "use strict";
  const form = document.getElementById("choose-game");
  if (!form) return;
  form.querySelector("button").hidden = true;
  for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.submit());
})();
