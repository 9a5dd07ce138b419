// The table in the browser: sends its state when the socket opens, sends moves, stores drafts, counts down, notifies.
(() => {
  "use strict";

  const table = document.getElementById("table");
  const connection = document.getElementById("connection");
  const warning = document.getElementById("warning");
  const log = document.getElementById("log-box");
  let socket = null; // the open socket's wrapper, or null
  let ahead = 0; // the server's clock minus ours, in milliseconds
  let warned = "";

  const byId = (id) => document.getElementById(id);

  function clientState() {
    const parts = {};
    for (const part of table.querySelectorAll("[data-part]")) parts[part.id.replace("part-", "")] = part.dataset.part;
    return { last: Number(byId("last").value), parts };
  }

  // --- connection ---

  table.addEventListener("htmx:wsOpen", (event) => {
    socket = event.detail.socketWrapper;
    connection.textContent = "";
    socket.sendImmediately(JSON.stringify(clientState()));
  });
  table.addEventListener("htmx:wsClose", (event) => {
    socket = null;
    const away = [1008, 1009].includes(event.detail.event.code);
    connection.textContent = away
      ? "The connection was ended. Reload the page to come back."
      : "The connection is lost; trying again. What you write now is sent as a form.";
  });
  table.addEventListener("htmx:wsBeforeMessage", () => {
    atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    const focused = table.contains(document.activeElement) ? document.activeElement : null;
    playing = focused !== null && focused.closest("#move, #part-stage") !== null;
    pressed = focused?.name === "choice" ? focused.value : "";
    asking = focused !== null && focused.closest("#part-coach") !== null;
    folded = table.querySelector(".card:not([open]):is(details)") !== null;
  });
  let atEnd = true;
  let playing = false; // the focus is on a control of the move; it must not be lost when the control is replaced
  let pressed = "";
  let asking = false; // the focus is on the button that asks a coach
  let folded = false; // the private card is folded away and must not open by itself
  table.addEventListener("htmx:wsAfterMessage", () => {
    settle();
    if (folded) table.querySelector("details.card")?.removeAttribute("open");
    if (atEnd) log.scrollTop = log.scrollHeight;
    unread.hidden = atEnd;
    if (playing && !document.activeElement.closest("#move, #part-stage")) refocus();
    if (asking && !document.activeElement.closest(".coach")) (byId("ask-coach") ?? byId("coach-said")).focus();
    lay();
    tick();
    notify();
    offer();
  });

  // Focuses the same button, else the text field, the first button or the first field; the link to the result; the log.
  function refocus() {
    const buttons = [...table.querySelectorAll("button[name=choice]")];
    const field = [...(form?.elements ?? [])].find((element) => element.matches("input:not([type=hidden]), select"));
    const next = buttons.find((button) => button.value === pressed) ?? byId("say") ?? buttons[0] ?? field;
    (next ?? table.querySelector(".ending a") ?? log).focus();
  }

  // --- what has not been read: the log was scrolled back when something came ---

  const unread = byId("unread");
  unread.addEventListener("click", () => { log.scrollTop = log.scrollHeight; log.focus(); });
  log.addEventListener("scroll", () => {
    if (log.scrollHeight - log.scrollTop - log.clientHeight < 60) unread.hidden = true;
  });

  // --- a reply begins with the name of whom it answers; it is offered while there is something to write in ---

  function offer() {
    const say = byId("say");
    for (const reply of log.querySelectorAll(".reply")) reply.hidden = say === null;
  }
  log.addEventListener("click", (event) => {
    const reply = event.target.closest(".reply");
    const say = byId("say");
    if (!reply || !say) return;
    if (!say.value.startsWith(`${reply.dataset.name}, `)) say.value = `${reply.dataset.name}, ${say.value}`;
    say.focus();
    say.setSelectionRange(say.value.length, say.value.length);
    say.dispatchEvent(new Event("input", { bubbles: true })); // keeps the draft
  });

  // --- moves, and requests for advice ---

  const form = byId("move");
  for (const each of [form, byId("coach-form")]) each?.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !socket) return; // without a socket the form posts itself
    event.preventDefault();
    const data = Object.fromEntries(new FormData(each, event.submitter));
    delete data.csrfmiddlewaretoken;
    if (!data.turn) return;
    socket.send(JSON.stringify(data));
  });
  table.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !form || event.target.form !== form) return;
    const { target } = event;
    const beside = target.matches("input") ? target.closest(".move-with, .move-text, .tray, .price-do") : null; // otherwise the browser presses the first button
    if (target.id !== "say" && !beside) return;
    event.preventDefault();
    const button = beside ? beside.querySelector("button[name=action]") : form.querySelector(".say-button");
    if (button) form.requestSubmit(button);
  });

  // --- drafts: unsent text survives a reload ---

  form?.addEventListener("input", (event) => {
    if (event.target.dataset.draft) sessionStorage.setItem("draft", JSON.stringify([event.target.dataset.draft, event.target.value]));
  });
  function restore() {
    const say = byId("say");
    if (!say || say.value) return;
    const [of, text] = JSON.parse(sessionStorage.getItem("draft") || "[]");
    if (of === say.dataset.draft) say.value = text;
  }

  // --- clock ---

  function settle() {
    const now = Date.parse(byId("last").dataset.now);
    if (now) ahead = now - Date.now();
    restore();
  }
  function tick() {
    for (const time of table.querySelectorAll("[data-until]")) {
      const left = secondsTo(time);
      time.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
      time.classList.toggle("soon", left <= 20 && !time.closest(".waiting"));
      const ring = time.parentElement.querySelector(".ring-left");
      if (ring) ring.setAttribute("stroke-dashoffset", String(100 - Math.min(100, (100 * left) / Number(time.dataset.of))));
    }
    const deadline = byId("deadline");
    if (!deadline || !table.querySelector("[data-turn]") || warned === deadline.dataset.until) return;
    const left = secondsTo(deadline);
    if (left > 20 || left === 0) return;
    warned = deadline.dataset.until;
    warning.textContent = `${left} seconds left for your move.`;
  }
  function secondsTo(time) {
    return Math.max(0, Math.round(Number(time.dataset.until) - (Date.now() + ahead) / 1000));
  }

  // --- a notice when it is one's turn: in the title of the tab; by sound and by the system where the person wants it ---

  const title = document.title;
  let turn = table.querySelector("[data-turn]")?.dataset.turn; // the turn of which the person knows
  const wanted = Object.fromEntries([...table.querySelectorAll("[data-notice]")].map((box) => [box.dataset.notice, box]));
  for (const [name, box] of Object.entries(wanted)) {
    box.checked = localStorage.getItem(`notice-${name}`) === "1";
    box.addEventListener("change", async () => {
      if (name === "system" && box.checked && (await Notification.requestPermission()) !== "granted") {
        box.checked = false;
        byId("notice-problem").textContent = "The browser does not allow this site to send notifications: allow them in its settings.";
      }
      localStorage.setItem(`notice-${name}`, box.checked ? "1" : "0");
    });
  }
  function notify() {
    const now = table.querySelector("[data-turn]")?.dataset.turn;
    document.title = now === undefined ? title : `▶ Your turn · ${title}`;
    if (now === undefined || now === turn) return;
    turn = now;
    if (wanted.sound?.checked) beep();
    if (wanted.system?.checked && document.hidden) new Notification(table.dataset.title, { body: byId("ask")?.textContent ?? "It is your turn.", tag: "turn" });
  }
  function beep() {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    volume.gain.setValueAtTime(0.12, audio.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.35);
    tone.frequency.value = 660;
    tone.connect(volume).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.35);
    tone.onended = () => audio.close();
  }

  // --- zones that edit a move: steps and sum of a tray, the slider of a price ---

  function lay() {
    for (const hidden of table.querySelectorAll("[data-step][hidden], .price-range[hidden]")) hidden.hidden = false;
    for (const tray of table.querySelectorAll(".tray[data-seat]")) add(tray);
    for (const scale of table.querySelectorAll(".price[data-seat]")) weigh(scale);
  }
  function add(tray) {
    const { seat, alone } = tray.dataset;
    const rest = [];
    let points = 0;
    for (const item of tray.querySelectorAll(".tray-item")) {
      const { count, name, worth } = item.dataset;
      const kept = Math.min(Number(count), Math.max(0, Number(item.querySelector("input").value)));
      if (kept < count) rest.push(`${name} × ${count - kept}`);
      points += kept * Number(worth);
      item.querySelector(".tray-gets").textContent = String(count - kept);
      item.querySelectorAll(".unit").forEach((unit, at) => {
        unit.classList.toggle(`seat-${seat}`, at < kept);
        unit.classList.toggle(`seat-${1 - seat}`, at >= kept);
      });
    }
    const sum = tray.querySelector(".tray-sum");
    sum.querySelector("[data-sum]").textContent = String(Math.round(100 * points) / 100);
    sum.querySelector("[data-rest]").textContent = rest.join(", ") || "nothing";
    sum.querySelector("[data-more]").textContent = points < Number(alone) ? ", which is more" : "";
    sum.hidden = false;
  }
  function weigh(scale) {
    const { value } = byId("price-value");
    const { seat, target } = scale.dataset;
    const better = seat === "0" ? target - value : value - target;
    const how = better > 0 ? `better than your target by ${better}` : `short of your target by ${-better}`;
    const sum = scale.querySelector(".price-sum");
    sum.textContent = `At ${value}: ${better ? how : "your target"}.`;
    sum.hidden = value === "";
  }
  table.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (!button) return;
    const field = button.parentElement.querySelector("input");
    field.value = String(Math.min(Number(field.max), Math.max(0, Number(field.value) + Number(button.dataset.step))));
    add(button.closest(".tray"));
  });
  table.addEventListener("input", (event) => {
    const { target } = event;
    const [tray, scale] = [target.closest(".tray[data-seat]"), target.closest(".price[data-seat]")];
    if (target.matches(".price-range")) byId(target.dataset.for).value = target.value;
    else if (target.id === "price-value") table.querySelector(".price-range").value = target.value;
    if (tray) add(tray);
    if (scale) weigh(scale);
  });

  // On a phone the conversation takes the room; the private card opens with a tap.
  if (window.matchMedia("(max-width: 30rem)").matches) table.matches(".focus-talk") && table.querySelector("details.card")?.removeAttribute("open");
  table.dataset.ready = ""; // until now the style sheet has kept it folded, so that nothing moves

  settle();
  notify();
  offer();
  lay();
  tick();
  setInterval(tick, 500);
  log.scrollTop = log.scrollHeight;
})();
