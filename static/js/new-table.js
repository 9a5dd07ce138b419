// A new table: choosing another game shows its scenarios and seats at once.
(() => {
  "use strict";
  const form = document.getElementById("choose-game");
  if (!form) return;
  form.querySelector("button").hidden = true;
  form.querySelector("select").addEventListener("change", () => form.submit());
})();
