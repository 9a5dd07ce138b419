// The numbers of a token, which its tooltip has, in a line at the end of the screen: for the token that is clicked or
// tapped, and for those that the arrow keys or the buttons of the line go to. Only the chosen token takes the focus.
(() => {
  "use strict";
  const bar = document.getElementById("token-bar");
  if (!bar) return;
  const facts = bar.querySelector("[role=status]");
  const tokens = [...document.querySelectorAll(".tokens .tk")];
  const steps = { ArrowLeft: -1, ArrowRight: 1 };
  let place = -1;

  function choose(next, focus) {
    const token = tokens[next];
    if (!token || next === place) return;
    const before = tokens[Math.max(place, 0)];
    before.classList.remove("chosen");
    before.removeAttribute("tabindex");
    place = next;
    token.classList.add("chosen");
    token.tabIndex = 0;
    facts.textContent = `${JSON.stringify(token.textContent)}: ${token.title}`;
    if (focus) token.focus();
    else token.scrollIntoView({ block: "nearest" });
  }

  if (tokens.length) tokens[0].tabIndex = 0;
  bar.hidden = false;
  document.addEventListener("click", (event) => {
    const token = event.target.closest(".tokens .tk");
    if (token) choose(tokens.indexOf(token), true);
  });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches(".tokens .tk")) choose(tokens.indexOf(event.target), false);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".tokens .tk") || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(place + steps[event.key], true);
  });
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-go]");
    if (button) choose(place + Number(button.dataset.go), false);
  });
})();
