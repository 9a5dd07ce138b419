// The replay: shows the newest line of the chosen step, and keeps the focus on the scrubber.
(() => {
  "use strict";
  function settle() {
    const log = document.querySelector("#replay .log");
    log.scrollTop = log.scrollHeight;
  }
  let scrubbing = false;
  // Swaps of other parts of the page do not scroll the log.
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
