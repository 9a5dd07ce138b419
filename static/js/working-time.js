// Active time: what a person spends on a target while the page is visible and used, how fast they are, and when to rest.
const workingTime = (() => {
  "use strict";
  const TICK = 1000;
  const IDLE = 60_000; // without a press or a move for so long, nobody works
  const session = { // of this tab
    get: (name) => Number(sessionStorage.getItem(name)) || 0,
    set: (name, value) => sessionStorage.setItem(name, String(value)),
  };

  // Calls `tick` after every second of work, and `rest` once `minutes` of work have passed since the last break; 0: never.
  function start({ minutes, tick, rest }) {
    let used = Date.now();
    for (const type of ["keyup", "pointerdown", "pointermove", "scroll", "focusin"]) document.addEventListener(type, () => { used = Date.now(); }, { capture: true, passive: true });
    window.setInterval(() => {
      if (document.visibilityState !== "visible" || Date.now() - used > IDLE) return;
      session.set("judging-worked", session.get("judging-worked") + 1);
      tick();
      if (minutes && session.get("judging-worked") >= minutes * 60) {
        rest(Math.round(session.get("judging-worked") / 60));
        session.set("judging-worked", 0);
      }
    }, TICK);
  }

  // Counts a judgment of so many seconds; the pace of this session, in words.
  function judged(seconds) {
    session.set("judging-count", session.get("judging-count") + 1);
    session.set("judging-seconds", session.get("judging-seconds") + seconds);
    return pace();
  }

  function pace() {
    const count = session.get("judging-count");
    if (!count) return "";
    const each = session.get("judging-seconds") / count;
    return `${count} in this session, ${each < 90 ? `${Math.round(each)} s` : `${(each / 60).toFixed(1)} min`} each`;
  }

  return { start, judged, pace };
})();
