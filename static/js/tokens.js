// The numbers of a token, which its tooltip has, in a line at the end of the screen: for the token that is clicked or
// tapped, and for those that the arrow keys or the buttons of the line go to. Choosing begins at the first sampled token.
// Only the chosen token takes the focus; a folded prompt opens for one of its own.
(() => {
  "use strict";
  const bar = document.getElementById("token-bar");
  if (!bar) return;
  const facts = bar.querySelector("[role=status]");
  const none = facts.textContent;
  const tokens = [...document.querySelectorAll(".tokens .tk")];
  const turns = [...document.querySelectorAll(".stretch.sampled .tokens")].map((each) => tokens.indexOf(each.firstElementChild));
  const steps = { ArrowLeft: -1, ArrowRight: 1 };
  let place = -1;
  let reachable = null;

  function reach(token) {
    if (token === reachable) return; // without its tabindex it would lose the focus that it is about to get
    reachable?.removeAttribute("tabindex");
    reachable = token;
    token.tabIndex = 0;
  }

  function choose(next, focus) {
    const token = tokens[next];
    if (!token || next === place) return;
    tokens[place]?.classList.remove("chosen");
    place = next;
    token.classList.add("chosen");
    reach(token);
    facts.textContent = `${JSON.stringify(token.textContent)}: ${token.title}`;
    const prompt = token.closest("details.prompt");
    if (prompt) prompt.open = true;
    if (focus) token.focus();
    else token.scrollIntoView({ block: "nearest" });
  }

  function go(by, turn, focus) {
    let next = place + by;
    if (turn) next = by > 0 ? turns.find((each) => each > place) : turns.findLast((each) => each < place);
    choose(place < 0 ? tokens.indexOf(reachable) : next, focus);
  }

  if (tokens.length) reach(tokens[turns[0] ?? 0]);
  bar.hidden = false;
  document.addEventListener("click", (event) => {
    const token = event.target.closest(".tokens .tk");
    if (token) choose(tokens.indexOf(token), true);
  });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches(".tokens .tk")) choose(tokens.indexOf(event.target), false);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".tokens .tk") || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(steps[event.key], event.shiftKey, true);
  });
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-go]");
    if (button) go(Number(button.dataset.go), "turn" in button.dataset, false);
  });
  // A prompt that is closed over the chosen token would leave none that Tab reaches.
  document.addEventListener("toggle", (event) => {
    const prompt = event.target;
    if (!prompt.matches("details.prompt") || prompt.open || !prompt.contains(tokens[place] ?? null)) return;
    tokens[place].classList.remove("chosen");
    place = -1;
    facts.textContent = none;
    reach(tokens[tokens.indexOf(prompt.querySelector(".tk:last-child")) + 1]);
  }, true);
})();
