"use strict";

// Keyboard shortcuts.

const KEYS = [
  [["/"], "search the cases"],
  [["j", "k"], "next and previous row, or case"],
  [["Enter"], "open the case"],
  [["←", "→"], "other trials, on their tabs"],
  [["Esc"], "back to the table"],
  [["?"], "this list"],
];

/** Add the buttons to the bar, and listen to keys. */
function listenToKeys(table, page) {
  const single = make("input", { type: "checkbox", id: "single-keys", checked: choiceOf("keys") !== "off" });
  single.addEventListener("change", () => keep("keys", single.checked ? "on" : "off"));
  const help = helpDialog(single);
  const opener = make("button", { type: "button", "aria-haspopup": "dialog", on: { click: () => help.showModal() } }, "Keys ?");
  document.body.append(help);
  document.getElementById("tools").append(themeButton(), opener);
  addEventListener("keydown", (event) => follow(event, { help, table, page, hasLetters: single.checked }));
}

function follow(event, { help, table, page, hasLetters }) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const isBusy = event.target.closest("input, select, textarea, dialog") !== null;
  const isCase = !page.case.hidden;
  if (event.key === "Escape") {
    if (isBusy) event.target.blur();
    else if (isCase) page.case.querySelector("#back").click();
    return;
  }
  if (isBusy) return;
  const isInRow = event.target.closest("tbody tr") !== null;
  const letters = hasLetters ? { j: 1, k: -1 } : {};
  const by = { ...letters, ...(isInRow ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (by !== undefined && isCase) page.case.querySelector(`[data-step=${event.key}]`)?.click();
  else if (by !== undefined) table.step(by);
  else if (hasLetters && event.key === "?") help.showModal();
  else if (hasLetters && event.key === "/" && !isCase) table.search.focus();
  else return;
  event.preventDefault();
}

function helpDialog(single) {
  const items = KEYS.map(([names, text]) => [
    make("dt", {}, names.map((each, index) => [index > 0 && " ", make("kbd", {}, each)])), make("dd", {}, text),
  ]);
  const dialog = make("dialog", { "aria-labelledby": "keys-title" },
    make("h2", { id: "keys-title" }, "Keys"),
    make("dl", {}, items),
    make("p", {}, make("label", {}, single, " Single characters are shortcuts")),
    make("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}
