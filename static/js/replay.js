// The replay: the newest line of the chosen step is in sight, and the scrubber keeps the focus.
(() => {
  "use strict";
  function settle() {
    const log = document.querySelector("#replay .log");
    log.scrollTop = log.scrollHeight;
  }
  let scrubbing = false;
  document.addEventListener("htmx:beforeSwap", () => {
    scrubbing = document.activeElement?.id === "scrub";
  });
  document.addEventListener("htmx:afterSwap", () => {
    settle();
    if (scrubbing) document.getElementById("scrub")?.focus();
  });
  settle();
})();
