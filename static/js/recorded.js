// A recorded game that replays itself: advances by a step every few seconds, unless it is paused, hidden from view, or
// the person wishes for less motion; then the buttons beside it go forward and back.
(() => {
  "use strict";
  const STEP_MS = 3500;
  const END_MS = 9000; // the end stays longer before the game begins again
  const place = document.getElementById("recorded");
  let paused = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  let timer = 0;

  function show() {
    const log = place.querySelector(".log");
    log.scrollTop = log.scrollHeight;
    const button = place.querySelector("[data-pause]");
    button.hidden = false;
    button.textContent = paused ? "Play" : "Pause";
    button.setAttribute("aria-label", paused ? "Play the recording" : "Pause the recording");
    wait();
  }
  function wait() {
    window.clearTimeout(timer);
    const game = place.querySelector("[data-next]");
    if (!paused && game) timer = window.setTimeout(advance, game.dataset.last ? END_MS : STEP_MS);
  }
  function advance() {
    const game = place.querySelector("[data-next]");
    if (document.hidden || place.contains(document.activeElement)) wait(); // do not replace what somebody uses
    else htmx.ajax("GET", game.dataset.next, { target: "#recorded", swap: "innerHTML" });
  }
  place.addEventListener("click", (event) => {
    if (!event.target.closest("[data-pause]")) return;
    paused = !paused;
    show();
    if (!paused) event.target.blur();
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === place) show();
  });
  show();
})();
