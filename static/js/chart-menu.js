// The menu of one chart: logarithmic axes, its place, hiding it; its title can be dragged to another place.
const chartMenu = (() => {
  "use strict";
  let dragged = null; // the chart that is being dragged

  function button(text, press) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "small secondary";
    made.textContent = text;
    made.addEventListener("click", () => press(made));
    return made;
  }

  function menu(entry, choices, names) {
    const folded = document.createElement("details");
    folded.className = "dropdown chart-menu";
    const summary = document.createElement("summary");
    summary.textContent = "⋯";
    summary.setAttribute("aria-label", `Options of the chart ${entry.title}`);
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    const shift = (by) => (pressed) => {
      choices.move(entry.name, names(), names().indexOf(entry.name) + by);
      pressed.focus();
    };
    const axes = ["log_x", "log_y"].map((kind) => {
      const made = button(kind === "log_x" ? "Logarithmic steps" : "Logarithmic values", () => choices.toggle(kind, entry.name));
      made.dataset.kind = kind;
      return made;
    });
    const hide = button("Hide", () => {
      choices.toggle("hidden", entry.name, true);
      choices.show();
      document.querySelector("#curve-tools summary").focus();
    });
    sheet.append(...axes, button("Move earlier", shift(-1)), button("Move later", shift(1)), hide);
    const pressed = () => axes.forEach((made) => made.setAttribute("aria-pressed", String(choices.has(made.dataset.kind, entry.name))));
    sheet.addEventListener("click", pressed);
    document.getElementById("charts-reset").addEventListener("click", pressed);
    pressed();
    folded.append(summary, sheet);
    return folded;
  }

  function draggable(entry, choices, names) {
    const title = entry.head.querySelector("h4");
    title.draggable = true;
    title.addEventListener("dragstart", (event) => {
      dragged = entry;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", entry.title);
      event.dataTransfer.setDragImage(entry.figure, 10, 10);
    });
    title.addEventListener("dragend", () => { dragged = null; });
    entry.figure.addEventListener("dragover", (event) => { if (dragged?.grid === entry.grid) event.preventDefault(); });
    entry.figure.addEventListener("drop", (event) => {
      if (dragged === null || dragged.grid !== entry.grid || dragged === entry) return;
      event.preventDefault();
      choices.move(dragged.name, names(), names().indexOf(entry.name));
    });
  }

  return (entry, choices, names) => {
    entry.head.append(menu(entry, choices, names));
    draggable(entry, choices, names);
  };
})();
