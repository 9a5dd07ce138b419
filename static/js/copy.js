// A button with data-copy copies the text of the element that it names, and announces it to screen readers.
(() => {
  "use strict";
  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    const status = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(source.textContent);
      status.textContent = "Copied.";
    } catch { // no permission, or no secure context: browsers then offer the older command alone, or the user copies
      window.getSelection().selectAllChildren(source);
      status.textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with Ctrl+C or the menu.";
    }
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
})();
