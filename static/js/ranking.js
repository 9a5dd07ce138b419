// A ranking of turns: input[data-ranking] has their numbers from 1 in order, and the list beside it moves them.
const ranking = (() => {
  "use strict";
  const LONGEST = 50;
  const lists = new WeakMap();

  const read = (input) => (input.value.match(/\d+/g) ?? []).map(Number);

  function write(input, numbers) {
    input.value = numbers.join(", ");
    show(input);
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function button(text, label, act, disabled = false) {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "small secondary", textContent: text, ariaLabel: label, disabled });
    made.addEventListener("click", act);
    return made;
  }

  function words(input, number) {
    const turn = input.closest("[data-target]")?.querySelector(`li[data-turn="${number - 1}"]`);
    const text = turn?.querySelector("[data-text]")?.textContent ?? "";
    return `Turn ${number}${text ? `: ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}` : ""}`;
  }

  // Shows the list anew, for what the input has; `focus` is the number whose button of that label keeps the focus.
  function show(input, focus = null) {
    const { list, select } = lists.get(input);
    const numbers = read(input);
    const move = (at, by) => () => {
      const moved = [...numbers];
      [moved[at], moved[at + by]] = [moved[at + by], moved[at]];
      write(input, moved);
      show(input, [numbers[at], by]);
    };
    list.replaceChildren(...numbers.map((number, at) => {
      const item = document.createElement("li");
      item.append(`${words(input, number)} `,
        button("↑", `Turn ${number} earlier`, move(at, -1), at === 0), " ",
        button("↓", `Turn ${number} later`, move(at, 1), at === numbers.length - 1), " ",
        button("×", `Turn ${number} out of the ranking`, () => { write(input, numbers.filter((each) => each !== number)); select.focus(); }));
      return item;
    }));
    const left = JSON.parse(input.dataset.ranking).filter((number) => !numbers.includes(number));
    const none = new Option(left.length ? "Add a turn" : "Every turn has its place", "");
    select.replaceChildren(none, ...left.map((number) => new Option(words(input, number), number)));
    if (focus) {
      const [number, by] = focus;
      const all = [...list.children[numbers.indexOf(number)].querySelectorAll("button:not(:disabled)")];
      (all.find((each) => each.textContent === (by < 0 ? "↑" : "↓")) ?? all[0]).focus();
    }
  }

  function start(within) {
    for (const input of within.querySelectorAll("input[data-ranking]")) {
      if (lists.has(input)) continue;
      const list = Object.assign(document.createElement("ol"), { className: "ranking" });
      const select = Object.assign(document.createElement("select"), { ariaLabel: "Add a turn to the ranking" });
      lists.set(input, { list, select });
      select.addEventListener("change", (event) => {
        event.stopPropagation();
        if (select.value) write(input, [...read(input), Number(select.value)]);
      });
      input.addEventListener("change", () => show(input));
      input.after(list, select);
      show(input);
    }
  }

  return { start, show };
})();
