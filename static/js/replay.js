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
  // The moves of the analysis lead to their step in place, from the viewpoint that is shown.
  function mark() {
    const step = document.getElementById("scrub")?.value;
    for (const link of document.querySelectorAll("#analysis a[data-step]")) {
      if (link.dataset.step === step) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#analysis a[data-step]");
    const scrub = document.getElementById("scrub");
    if (!link || !scrub || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    scrub.value = link.dataset.step;
    scrub.dispatchEvent(new Event("change", { bubbles: true }));
    document.getElementById("replay").scrollIntoView({ block: "start" });
  });
  document.addEventListener("htmx:afterSettle", mark);
  settle();
})();
