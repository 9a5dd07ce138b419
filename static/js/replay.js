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
  // While a step loads, the newest one that is asked for waits: the scrubber that would send it is about to be replaced.
  let loading = false;
  let next = null;
  const ofReplay = (event) => event.detail.target?.id === "replay";
  document.addEventListener("change", (event) => {
    if (!loading || event.target.id !== "scrub") return;
    event.stopPropagation();
    next = event.target.value;
  }, true);
  function loaded() {
    const scrub = document.getElementById("scrub");
    const step = next;
    loading = false;
    next = null;
    if (step === null || !scrub || scrub.value === step) return;
    scrub.value = step;
    scrub.dispatchEvent(new Event("change", { bubbles: true }));
  }
  document.addEventListener("htmx:beforeRequest", (event) => { if (ofReplay(event)) loading = true; });
  document.addEventListener("htmx:afterRequest", (event) => { if (ofReplay(event) && !event.detail.successful) loaded(); });
  document.addEventListener("htmx:afterSettle", (event) => { if (ofReplay(event)) loaded(); });
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
  // Left and right go a step back and forward, unless what has the focus uses these keys itself.
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const scrub = document.getElementById("scrub");
    if (!by || !scrub || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.target.closest("input, select, textarea, dialog, .scroll")) return;
    event.preventDefault();
    const before = scrub.value;
    scrub.value = Number(before) + by; // the range keeps to its ends
    if (scrub.value !== before) scrub.dispatchEvent(new Event("change", { bubbles: true }));
  });
  settle();
})();
