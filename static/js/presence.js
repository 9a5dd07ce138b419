// Tells the site with every beat of a participant's page whether the page is in the foreground.
(() => {
  "use strict";
  document.addEventListener("htmx:configRequest", (event) => {
    if (!event.detail.elt.matches("[data-presence]")) return;
    event.detail.parameters.visible = document.visibilityState === "visible" ? "1" : "0";
  });
})();
