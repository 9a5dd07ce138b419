// The search that opens over every page, and the list of the page's keys. Without this script the link opens the page of
// the search instead.
(() => {
  "use strict";
  const palette = document.getElementById("palette");
  const help = document.getElementById("keys");
  const field = palette?.querySelector("[role=combobox]");
  const hits = document.getElementById("palette-hits");
  const singleKeys = () => localStorage.getItem("single-keys") !== "0";

  function open() {
    if (!palette || palette.open) return;
    if (help.open) help.close();
    palette.showModal();
    field.select();
    htmx.trigger(field, "palette-opened");
  }
  function showKeys() {
    if (!help || help.open) return;
    if (palette.open) palette.close();
    for (const line of help.querySelectorAll("[data-when]")) line.hidden = document.querySelector(line.dataset.when) === null;
    help.showModal();
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !shortcuts.writes(event.target) && singleKeys()) {
      if (event.key === "/") open();
      else if (event.key === "?") showKeys();
      else return;
      event.preventDefault();
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]")) {
      event.preventDefault();
      open();
    } else if (event.target.closest("[data-keys]")) showKeys();
    else if (event.target.closest("dialog [data-close]")) event.target.closest("dialog").close();
    else if (event.target.matches?.("dialog[open]")) event.target.close(); // beside what it holds
  });
  const single = help?.querySelector("[data-single]");
  if (single) {
    single.checked = singleKeys();
    single.addEventListener("change", () => localStorage.setItem("single-keys", single.checked ? "1" : "0"));
  }
  if (!palette) return;

  // --- the list: the field keeps the focus, and names the chosen option ---

  const options = () => [...hits.querySelectorAll("[role=option]")];
  const chosen = () => hits.querySelector("[aria-selected=true]");
  function choose(option) {
    chosen()?.setAttribute("aria-selected", "false");
    field.toggleAttribute("aria-activedescendant", Boolean(option));
    if (!option) return;
    option.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }
  let answered = ""; // the words to which the list belongs
  palette.addEventListener("htmx:beforeRequest", () => { palette.dataset.asked = field.value; });
  palette.addEventListener("htmx:afterSwap", () => {
    answered = palette.dataset.asked;
    document.getElementById("palette-count").textContent = hits.querySelector("[data-count]")?.textContent ?? "";
    choose(answered ? options()[0] : null);
  });
  function close() {
    palette.close();
    field.blur(); // else it keeps the focus until the page is drawn again, and a key pressed before that is written in it
  }
  field.addEventListener("keydown", (event) => {
    const all = options();
    const at = all.indexOf(chosen());
    if (event.key === "ArrowDown") choose(all[(at + 1) % all.length]);
    else if (event.key === "ArrowUp") choose(all[(at > 0 ? at : all.length) - 1]);
    else if (event.key === "Escape") close(); // a search field would take the first press to empty itself
    else if (event.key === "Enter" && chosen() && answered === field.value) chosen().click();
    else return; // Enter without a choice opens the page of the search
    event.preventDefault();
  });
})();
