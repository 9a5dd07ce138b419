// A button with data-copy copies the text of the element that it names, and announces it to screen readers.
(() => {
  "use strict";
  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    const said = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(source.textContent);
      said.textContent = "Copied.";
    } catch {
      window.getSelection().selectAllChildren(source); // without permission or a secure context the user copies by keyboard
      said.textContent = "Selected: press Ctrl+C to copy.";
    }
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
})();
