// Judging one target after another: the next one is here before it is asked for, and shown at once; what was entered is saved
// meanwhile. What cannot be saved comes back to the screen with everything that was entered, and is sent again by the person.
(() => {
  "use strict";
  const root = document.getElementById("judging");
  const [onScreen, next, unsaved, notes] = ["on-screen", "next", "unsaved", "judging-notes"].map((id) => document.getElementById(id));
  const { address } = root.dataset;
  const actions = JSON.parse(root.dataset.actions);
  const keys = shortcuts.bind(actions);
  const forms = new WeakMap();
  const outbox = []; // what is not saved yet, in order
  let [current, busy] = [null, false];

  function formOf(article) {
    if (!forms.has(article)) forms.set(article, new judgingForm.JudgingForm(article));
    return forms.get(article);
  }
  const isReopened = (judging) => "reopened" in judging.form.dataset;
  const parse = (html) => new DOMParser().parseFromString(html, "text/html").body.firstElementChild;

  // --- what is on the screen ---

  function show(article) {
    onScreen.replaceChildren(article);
    current = formOf(article);
    window.scrollTo(0, 0);
    const place = article.querySelector("li[data-turn][tabindex='0']") ?? article.querySelector("form.judging .question-row input") ?? article.querySelector("h2");
    place.focus({ preventScroll: true });
  }

  function progress({ done, total }) {
    Object.assign(root.dataset, { done, total });
    const bar = Object.assign(document.createElement("progress"), { value: Number(done), max: Number(total), ariaLabel: "Done" });
    document.getElementById("review").hidden = Number(done) === 0;
    document.getElementById("progress").replaceChildren(`${done} of ${total} done `, bar);
  }

  // Takes the answer of the site: how far the person is, and the target that follows.
  function take(html) {
    const answer = parse(html);
    progress(answer.dataset);
    const checked = answer.querySelector("[data-checked]");
    const note = checked ?? answer.querySelector("[data-withdrawn]");
    if (note) notes.replaceChildren(note);
    const article = answer.querySelector("article");
    if (article && document.getElementById(article.id) === null) {
      next.replaceChildren(article);
      formOf(article);
    }
    if (current) return;
    if (next.firstElementChild) show(next.firstElementChild);
    else location.assign(checked?.querySelector("a").href ?? address); // everything is done
  }

  async function preload() {
    if (!current || isReopened(current) || next.firstElementChild || outbox.length) return;
    const { target } = current.article.dataset;
    const answer = await ask(`${address}?after=${target}`);
    if (answer.html && current?.article.dataset.target === target && !outbox.length) take(answer.html);
  }

  // --- saving ---

  const SILENT = "The site does not answer.";
  const KEPT = "What you entered is kept on this device. Save it again.";
  const WHY = { 401: "You are signed out.", 403: "The page has expired: reload it.", 404: "It is no longer assigned to you, or was removed from the queue.", 429: "Too many requests." };

  async function ask(to, data = null) {
    try {
      const response = await fetch(to, { method: data ? "POST" : "GET", body: data, headers: { "HX-Request": "true" }, redirect: "manual", signal: AbortSignal.timeout(60_000) });
      if (response.type === "opaqueredirect") return { moved: true };
      if (response.ok) return { html: await response.text() };
      if (response.status === 422) return { refused: await response.text() };
      return { status: response.status, why: WHY[response.status] ?? `This did not work (${response.status}).` };
    } catch {
      return { why: SILENT };
    }
  }

  function save(judging, submitter) {
    const begun = performance.now();
    const data = new FormData(judging.form, submitter);
    data.set("seconds", String(Math.round(judging.seconds)));
    outbox.push({ judging, data });
    judging.article.querySelector(".request-problem")?.remove();
    current = null;
    const following = isReopened(judging) ? null : next.firstElementChild;
    if (following) {
      unsaved.append(judging.article);
      show(following);
      requestAnimationFrame(() => window.setTimeout(() => performance.measure("judging:next", { start: begun })));
    } else judging.form.inert = true;
    send();
  }

  async function send() {
    if (busy) return;
    busy = true;
    while (outbox.length) {
      const { judging, data } = outbox[0];
      data.set("shown", current?.article.dataset.target ?? "");
      const answer = await ask(address, data);
      outbox.shift();
      if (answer.why) {
        comesBack(judging, answer);
        break; // what was entered afterwards waits
      }
      if (answer.refused) refused(judging, answer.refused, data);
      else saved(judging, answer);
    }
    busy = false;
    preload();
  }

  function saved(judging, answer) {
    judging.saved();
    notes.querySelector("[data-withdrawn]")?.remove();
    document.getElementById("pace").textContent = workingTime.judged(judging.seconds);
    judging.article.remove();
    if (answer.moved) location.assign(document.querySelector("#review a").href);
    else take(answer.html);
  }

  // Puts a target that was not saved back on the screen, before the one that followed it.
  function back(judging, article) {
    const shown = onScreen.querySelector("article");
    if (shown && shown !== judging.article) next.replaceChildren(shown);
    judging.form.inert = false;
    judging.article.replaceWith(article);
    show(article);
  }

  // The focus goes to what has to be corrected, near which the refusal stands: on a phone the top of the page is far away.
  function refused(judging, html, data) {
    back(judging, parse(html));
    const { form } = current;
    const wrong = form.querySelector("fieldset .problem")?.closest("fieldset").querySelector("input, textarea");
    const reason = data.has("skip") ? "why" : data.has("unscored") ? "reason" : null;
    (wrong ?? (reason ? form.elements.namedItem(reason) : buttonOf("save"))).focus();
    current.keep();
  }

  function comesBack(judging, { status, why }) {
    back(judging, judging.article);
    const problem = document.createElement("p");
    problem.className = "request-problem problem";
    problem.setAttribute("role", "alert");
    problem.append(`${why} ${KEPT}`);
    if (status === 401) problem.append(" ", Object.assign(document.createElement("a"), { href: document.body.dataset.signIn, target: "_blank", textContent: "Sign in in a new tab" }));
    judging.form.querySelector("[data-act=save]").closest(".buttons").before(problem);
    judging.form.querySelector("[data-act=save]").focus();
  }

  // Before the listener of every form: these forms do not leave the page.
  document.addEventListener("submit", (event) => {
    const article = event.target.closest("#on-screen article");
    if (!article || !event.target.matches("form.judging")) return;
    event.preventDefault();
    if (current && current.article === article) save(current, event.submitter);
  }, true);

  window.addEventListener("beforeunload", (event) => { if (outbox.length) event.preventDefault(); });

  // --- keys ---

  const buttonOf = (name) => current.form.querySelector(`[data-act=${name}]`);
  const ACTS = {
    save: () => current.form.requestSubmit(buttonOf("save")),
    unscored() {
      const comment = current.form.elements.namedItem("reason");
      if (comment.value.trim()) current.form.requestSubmit(buttonOf("unscored"));
      else {
        comment.focus();
        current.say("Write in the comment why it cannot be scored, then leave the field and press the key again.", true);
      }
    },
    skip() {
      const details = current.form.querySelector(".put-aside");
      if (!details) return;
      details.open = true;
      details.querySelector("input").focus();
    },
    unsure: () => current.form.elements.namedItem("unsure").click(),
    comment: () => current.form.elements.namedItem("reason").focus(),
    question: () => current.question(),
    conversation: () => (current.article.querySelector("li[data-turn][tabindex='0']") ?? current.article.querySelector("h2")).focus(),
    guideline() {
      const dialog = current.form.querySelector("dialog.guideline");
      if (!dialog) current.say("This codebook has no guideline.");
      else if (dialog.open) dialog.close();
      else dialog.showModal();
    },
    facts() {
      const details = current.article.querySelector(".hidden-facts");
      if (details) details.open = !details.open;
      else current.say("This queue does not show hidden information.");
    },
    earlier: () => location.assign(`${address}?earlier=1`),
    undo: () => current.undo("undo"),
    redo: () => current.undo("redo"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !current) return;
    const action = keys.action(event);
    const open = document.querySelector("dialog[open]");
    if (open ? !(open.matches(".guideline") && action === "guideline") : event.key === "Escape" && event.target.closest(".put-aside")) {
      if (!open) {
        event.target.closest(".put-aside").open = false;
        ACTS.conversation();
      }
      return;
    }
    if (!(action in ACTS) || (shortcuts.writes(event.target) && !(action === "save" && (event.ctrlKey || event.metaKey)))) return;
    ACTS[action]();
    event.preventDefault();
  });
  root.addEventListener("click", ({ target }) => { if (target.closest("[data-act=guideline]") && current) ACTS.guideline(); });

  function listKeys() {
    const list = document.querySelector("#keys dl");
    for (const { name, title } of actions) {
      const line = document.createElement("div");
      line.className = "key-line";
      const term = document.createElement("dt");
      for (const key of keys.of(name)) term.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
      line.append(term, Object.assign(document.createElement("dd"), { textContent: title }));
      list?.append(line);
    }
  }

  // --- time ---

  function rest(minutes) {
    const note = document.createElement("p");
    note.className = "note break-note";
    note.setAttribute("role", "status");
    const done = Object.assign(document.createElement("button"), { type: "button", className: "small secondary", textContent: "Go on" });
    done.addEventListener("click", () => {
      note.remove();
      if (current) ACTS.conversation();
    });
    note.append(`You have worked for ${minutes} minutes. Take a break. `, done);
    notes.replaceChildren(note);
  }
  workingTime.start({
    minutes: Number(root.dataset.breakMinutes),
    tick: () => { if (current) current.seconds += 1; },
    rest,
  });
  document.getElementById("pace").textContent = workingTime.pace();

  listKeys();
  const first = onScreen.querySelector("article");
  if (first) {
    current = formOf(first);
    preload();
  }
})();
