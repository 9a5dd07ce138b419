// An import shows the options of the chosen format only. Without this script all of them are shown.
(() => {
  "use strict";
  const format = document.getElementById("id_format");
  if (!format) return;
  const show = () => {
    for (const control of document.querySelectorAll("[data-formats]")) {
      control.closest(".field").hidden = !control.dataset.formats.split(" ").includes(format.value);
    }
  };
  format.addEventListener("change", show);
  show();
})();
