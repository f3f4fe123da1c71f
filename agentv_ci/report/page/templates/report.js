"use strict";

// Addresses, keys and themes: what joins the table and the pages of cases. The address after # says which view it is.

function start() {
  const run = dataOf("run");
  const cases = dataOf("cases");
  const page = { overview: document.getElementById("overview"), case: document.getElementById("case") };
  const title = document.title;
  const byName = new Map(cases.map((each) => [nameOf(run, each), each]));
  const byNumber = new Map(cases.map((each) => [each.n, each]));
  const memory = { list: "", scroll: 0, shown: null };

  const addressOf = (each, trial = 1) => {
    const parameters = new URLSearchParams({ case: each.id, suite: run.suites[each.suite], target: run.targets[each.target] });
    if (trial !== 1) parameters.set("trial", trial);
    return `#${parameters}`;
  };
  const go = (parameters, isReplacing) => {
    const address = `#${parameters}`;
    if (address === (location.hash || "#")) return;
    try {
      history[isReplacing ? "replaceState" : "pushState"](null, "", address);
      route();
    } catch {
      // Some viewers of files have no history of their own.
      location.hash = address;
    }
  };
  const table = new CaseTable(run, cases, { open: go, addressOf });
  document.getElementById("table").replaceWith(table.element);

  function route() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    if (!parameters.has("case")) return showList(parameters);
    const each = byName.get([parameters.get("case"), parameters.get("suite"), parameters.get("target")].join("\n"));
    return each === undefined ? showUnknown(parameters) : showCase(each, Number(parameters.get("trial") || 1));
  }

  function showList(parameters) {
    const left = memory.shown;
    memory.list = location.hash;
    memory.shown = null;
    document.title = title;
    page.case.hidden = true;
    page.overview.hidden = false;
    table.show(stateOf(parameters));
    if (left === null) return;
    table.focus(left);
    window.scrollTo(0, memory.scroll);
  }

  function showCase(each, trial) {
    leaveList(each.n);
    if (table.rendered === undefined) table.show(stateOf(new URLSearchParams(memory.list.slice(1))));
    const at = table.found.indexOf(each);
    const neighbour = (by) => (at < 0 || table.found[at + by] === undefined ? null : addressOf(table.found[at + by]));
    document.title = `${each.verdict}: ${inline(each.id)}`;
    page.case.replaceChildren(...casePage(run, each, trial, {
      back: memory.list || "#", previous: neighbour(-1), next: neighbour(1), place: at < 0 ? "" : `${count(at + 1)} of ${count(table.found.length)}`,
      chose: (number) => { try { history.replaceState(null, "", addressOf(each, number)); } catch { /* the address stays */ } },
    }).filter(Boolean));
    page.case.querySelector("h1").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  function showUnknown(parameters) {
    leaveList(null);
    page.case.replaceChildren(make("div", { class: "empty" },
      make("h1", { tabindex: "-1" }, "No such case"), make("p", {}, "This run has no case ", make("b", {}, inline(parameters.get("case"))), ", or the table has no room for it."),
      make("a", { class: "button", href: "#", id: "back" }, "← All cases")));
  }

  function leaveList(number) {
    if (!page.overview.hidden) memory.scroll = window.scrollY;
    memory.shown = number;
    page.overview.hidden = true;
    page.case.hidden = false;
  }

  // From case to case the address is replaced: one step back leads to the table.
  page.case.addEventListener("click", (event) => {
    const step = event.target.closest("a[data-step]");
    if (step === null || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (step.hasAttribute("href")) go(step.getAttribute("href").slice(1), true);
  });
  addEventListener("hashchange", () => route());
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (page.case.hidden ? document.getElementById("cases-title") : page.case.querySelector("h1")).focus();
  });
  addEventListener("beforeprint", () => { if (memory.shown === null && !page.overview.hidden) table.more(1000); });
  try { history.scrollRestoration = "manual"; } catch { /* then the browser decides */ }

  const help = helpDialog();
  document.body.append(help);
  document.getElementById("tools").append(themeButton(), make("button", { type: "button", "aria-haspopup": "dialog", "aria-keyshortcuts": "?", on: { click: () => help.showModal() } }, "Keys ?"));
  addEventListener("keydown", (event) => keys(event, { help, table, page, isCase: () => !page.case.hidden }));
  linkOverview(byName, byNumber, run, addressOf);
  tellWhatIsLeftOut(run, cases);
  route();
}

function nameOf(run, each) {
  return [each.id, run.suites[each.suite], run.targets[each.target]].join("\n");
}

function keys(event, { help, table, page, isCase }) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const isTyping = event.target.closest("input[type=search], select, textarea") !== null;
  if (event.key === "Escape") {
    if (isTyping) event.target.blur();
    else if (isCase()) page.case.querySelector("#back").click();
    return;
  }
  if (isTyping) return;
  const isInRow = event.target.closest("tbody tr") !== null;
  const by = { j: 1, k: -1, ...(isInRow ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (event.key === "?") help.showModal();
  else if (event.key === "/" && !isCase()) table.search.focus();
  else if (by !== undefined && isCase()) page.case.querySelector(`[data-step=${event.key}]`)?.click();
  else if (by !== undefined) table.step(by);
  else return;
  event.preventDefault();
}

function helpDialog() {
  const key = (keys, text) => [make("dt", {}, keys.map((each, index) => [index > 0 && " ", make("kbd", {}, each)])), make("dd", {}, text)];
  const dialog = make("dialog", { "aria-labelledby": "keys-title" },
    make("h2", { id: "keys-title" }, "Keys"),
    make("dl", {}, key(["/"], "search the cases"), key(["j", "k"], "next and previous row, or case"), key(["Enter"], "open the case"),
      key(["←", "→"], "other trials, on their tabs"), key(["Esc"], "back to the table"), key(["?"], "this list")),
    make("form", { method: "dialog" }));
  dialog.lastChild.replaceWith(make("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}

function themeButton() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = make("button", { type: "button", id: "theme" });
  const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`); };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("agentv-ci-theme", root.dataset.theme); } catch { /* it lasts as long as the page */ }
    tell();
  });
  tell();
  return button;
}

/** Marks of the plot and changes against the baseline lead to their cases. */
function linkOverview(byName, byNumber, run, addressOf) {
  const plot = document.getElementById("scatter");
  if (plot !== null) {
    plot.classList.add("live");
    plot.addEventListener("click", (event) => {
      const mark = event.target.closest("[data-case]");
      const each = mark === null ? undefined : byNumber.get(Number(mark.dataset.case));
      if (each !== undefined) location.hash = addressOf(each, Number(mark.dataset.trial));
    });
  }
  for (const item of document.querySelectorAll("#changes .id")) {
    const each = byName.get([item.dataset.id, item.dataset.suite, item.dataset.target].join("\n"));
    if (each !== undefined) item.replaceChildren(make("a", { href: addressOf(each) }, item.textContent));
  }
}

function tellWhatIsLeftOut(run, cases) {
  const left = [];
  if (run.texts < run.trials) left.push(`the texts of ${counted(run.trials - run.texts, "trial")} of ${count(run.trials)}`);
  if (cases.length < run.cases) left.push(`${counted(run.cases - cases.length, "case")} of ${count(run.cases)}`);
  if (left.length === 0) return;
  const note = `Left out, so that this file stays small enough to open: ${left.join(", and ")}; passed ones first. The results file has everything.`;
  document.getElementById("cases-title").after(make("p", { class: "warning" }, note));
}

start();
