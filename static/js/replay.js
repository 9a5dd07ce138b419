// The replay: the newest line of the chosen step is in sight, and the scrubber keeps the focus.
(() => {
  "use strict";
  function settle() {
    const log = document.querySelector("#replay .log");
    log.scrollTop = log.scrollHeight;
  }
  let scrubbing = false;
  // Other parts of the page swap, too: then the log stays where it is being read.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "replay") scrubbing = document.activeElement?.id === "scrub";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "replay") return;
    settle();
    if (scrubbing) document.getElementById("scrub")?.focus();
  });
  settle();
})();
