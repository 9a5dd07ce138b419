// Behaviour of every page: marks the current section, closes menus, reports failed requests.
(() => {
  "use strict";

  const here = document.location.pathname;
  const links = [...document.querySelectorAll("header.bar nav a[href]:not(.brand)")];
  const current = links.filter((a) => here.startsWith(new URL(a.href).pathname)).at(-1);
  if (current) current.setAttribute("aria-current", "page");

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.dropdown[open]")) {
      menu.removeAttribute("open");
      menu.querySelector("summary").focus();
    }
  });

  // Links styled as buttons react to the space bar like buttons.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches?.("a[role=button]")) return;
    event.preventDefault();
    event.target.click();
  });

  // Notes of what was done can be put away; those of errors have no such button.
  for (const button of document.querySelectorAll(".note .dismiss")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      button.closest(".note").remove();
      document.getElementById("main").focus();
    });
  }

  // A refused form begins at its first wrong field, which may be far below.
  document.querySelector("main form [aria-invalid=true]")?.focus();

  // What is replaced while somebody reads it stays scrolled; a log that is read at its end stays at its end.
  const places = new Map();
  const atEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  for (const log of document.querySelectorAll("pre.log")) log.scrollTop = log.scrollHeight;
  document.addEventListener("htmx:beforeSwap", (event) => {
    for (const box of event.detail.target.querySelectorAll("[data-scrolled]")) {
      places.set(box.dataset.scrolled, { left: box.scrollLeft, top: atEnd(box) ? Number.MAX_SAFE_INTEGER : box.scrollTop });
    }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const box of document.querySelectorAll("[data-scrolled]")) {
      const place = places.get(box.dataset.scrolled);
      if (place) box.scrollTo({ ...place, behavior: "instant" });
    }
    places.clear();
  });

  // What scrolls sideways and has nothing to focus inside is focusable itself, so that the arrow keys scroll it.
  function reach() {
    for (const box of document.querySelectorAll(".scroll")) {
      const alone = box.scrollWidth > box.clientWidth && !box.querySelector("a, button, input, select, summary, textarea");
      if (alone) box.tabIndex = 0;
    }
  }
  reach();
  window.addEventListener("resize", reach);
  document.addEventListener("htmx:afterSettle", reach);

  // Reports a failed request beside the button that was pressed, else beside the element that sent the request. The next
  // request of that element that succeeds takes the report away.
  const problems = new WeakMap();

  function problemOf(element, pressed) {
    const place = problems.get(element);
    if (place?.isConnected) return place;
    const made = document.createElement("p");
    made.className = "request-problem problem";
    made.setAttribute("role", "alert");
    const anchor = pressed?.isConnected ? pressed : element;
    (anchor.closest(".buttons") ?? anchor).after(made);
    problems.set(element, made);
    return made;
  }

  function report(event, text, link) {
    const { elt: element, requestConfig } = event.detail;
    if (element.closest(".running")) return; // the bar asks by itself, and asks again
    const place = problemOf(element, requestConfig?.triggeringEvent?.submitter);
    if (place.textContent === (link ? `${text} ${link.textContent}` : text)) return; // a screen reader reads it once
    place.replaceChildren(text, ...(link ? [" ", link] : []));
  }

  // In a new tab, so that the entered text is not lost.
  function signIn() {
    const link = document.createElement("a");
    link.href = document.body.dataset.signIn;
    link.target = "_blank";
    link.textContent = "Sign in in a new tab";
    return link;
  }

  const SILENT = "The site does not answer. Nothing was changed; try again.";
  const WHY = {
    403: "You are signed out, or the page is old. Reload it.",
    404: "This no longer exists, or you may not see it. Nothing was changed; reload the page.",
    429: "Too many requests. Nothing was changed; wait a minute, then try again.",
  };

  document.addEventListener("htmx:sendError", (event) => report(event, SILENT));
  document.addEventListener("htmx:timeout", (event) => report(event, SILENT));
  document.addEventListener("htmx:responseError", (event) => {
    const { status } = event.detail.xhr;
    if (status === 401) report(event, "You are signed out. Nothing was changed.", signIn());
    else report(event, WHY[status] ?? `This did not work (${status}). Nothing was changed.`);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) problems.get(event.detail.elt)?.remove();
  });

  // Forms and buttons with data-confirm ask for confirmation.
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm || event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  }, true);

  // Enter in a field beside a button presses that button, not the first one of the form.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches?.("input[data-enter]")) return;
    event.preventDefault();
    event.target.parentElement.querySelector("button").click();
  });

  // A box that selects all rows of a table, and how many are selected.
  function selection() {
    for (const all of document.querySelectorAll("[data-all]")) {
      const boxes = [...document.getElementsByName(all.dataset.all)].filter((box) => box.type === "checkbox");
      const chosen = boxes.filter((box) => box.checked).length;
      all.hidden = false;
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
      for (const count of document.querySelectorAll(`[data-count="${all.dataset.all}"]`)) count.textContent = `${chosen} selected`;
    }
  }
  document.addEventListener("change", (event) => {
    const name = event.target.dataset?.all;
    if (name) for (const box of document.getElementsByName(name)) if (box.type === "checkbox") box.checked = event.target.checked;
    selection();
  });
  document.addEventListener("htmx:afterSettle", selection);
  window.addEventListener("pageshow", selection); // a page from the history has its boxes as they were
  selection();

  // A form is sent once: a second press before the next page loads would create a second table, run or guest.
  const sent = new WeakSet();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.getAttribute("method")?.toLowerCase() !== "post") return;
    if (sent.has(form)) event.preventDefault();
    sent.add(form);
    window.setTimeout(() => sent.delete(form), 5000); // a download does not leave the page
  });
})();
