// What watchers write beside a game: greets the socket, keeps the log at its end and the focus in the field.
(() => {
  "use strict";

  const section = document.getElementById("watchers");
  if (!section) return;
  const log = section.querySelector(".log");
  let atEnd = true;

  // The newest line on the page: lines are appended in the order of their numbers.
  function last() {
    const newest = section.querySelector("#chat-messages > li:last-child");
    return newest ? Number(newest.id.replace("chat-message-", "")) : 0;
  }
  section.addEventListener("htmx:wsOpen", (event) => {
    event.detail.socketWrapper.sendImmediately(JSON.stringify({ last: last() }));
  });
  section.addEventListener("htmx:wsBeforeMessage", () => {
    atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  });
  section.addEventListener("htmx:wsAfterMessage", () => {
    if (atEnd) log.scrollTop = log.scrollHeight;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.elt.id === "watcher-form") document.getElementById("watcher-text")?.focus();
  });
  log.scrollTop = log.scrollHeight;
})();
