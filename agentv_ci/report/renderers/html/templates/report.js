"use strict";

// Routing between the table and the pages of cases: the fragment of the address selects the view.

function start() {
  const run = dataOf("run");
  const cases = dataOf("cases");
  const page = { overview: document.getElementById("overview"), case: document.getElementById("case") };
  const title = document.title;
  const byName = new Map(cases.map((each) => [nameOf(each.id, run.suites[each.suite], run.targets[each.target]), each]));
  const byNumber = new Map(cases.map((each) => [each.n, each]));
  const memory = { list: "", scroll: 0, shown: null };

  const addressOf = (each, trial = null) => {
    const parameters = new URLSearchParams({ case: each.id, suite: run.suites[each.suite], target: run.targets[each.target] });
    if (trial !== null && trial !== shownTrial(each)) parameters.set("trial", trial);
    return `#${parameters}`;
  };
  const go = (parameters, isReplacing = false) => {
    const address = `#${parameters}`;
    if (address === (location.hash || "#")) return;
    if (isWritten(address, isReplacing)) route();
    else location.hash = address;
  };
  const table = new CaseTable(run, cases, { open: go, addressOf });
  document.getElementById("table").replaceWith(table.element);
  document.getElementById("cases-title").after(table.count);

  function route() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    if (!parameters.has("case")) return showList(parameters);
    const each = byName.get(nameOf(parameters.get("case"), parameters.get("suite"), parameters.get("target")));
    return each === undefined ? showUnknown(parameters) : showCase(each, Number(parameters.get("trial")));
  }

  function showList(parameters) {
    const left = memory.shown;
    const isBack = page.overview.hidden;
    memory.list = location.hash;
    memory.shown = null;
    document.title = title;
    page.case.hidden = true;
    page.overview.hidden = false;
    table.show(stateOf(parameters));
    if (!isBack) return;
    if (left === null) document.getElementById("cases-title").focus({ preventScroll: true });
    else table.focus(left);
    window.scrollTo(0, memory.scroll);
  }

  function showCase(each, trial) {
    if (table.rendered === undefined) table.show(stateOf(new URLSearchParams(memory.list.slice(1))));
    const at = table.found.indexOf(each);
    const neighbour = (by) => (at < 0 || table.found[at + by] === undefined ? null : addressOf(table.found[at + by]));
    showPage(each.n, `${each.verdict}: ${inline(each.id)}`, (back) => casePage(run, each, trial, {
      back,
      previous: neighbour(-1),
      next: neighbour(1),
      others: table.siblingsOf(each).map((other) => [other, addressOf(other)]),
      place: at < 0 ? "" : `${count(at + 1)} of ${count(table.found.length)}`,
      chose: (number) => isWritten(addressOf(each, number), true),
    }));
  }

  function showUnknown(parameters) {
    const name = inline(parameters.get("case"));
    showPage(null, `No such case: ${name}`, (back) => [make("div", { class: "empty" },
      make("h1", { tabindex: "-1" }, "No such case"),
      make("p", {}, "Case ", make("b", {}, name), " is not in this run, or was left out to keep the file small."),
      make("a", { class: "button", href: back, id: "back" }, "← All cases"))]);
  }

  /** Show a page instead of the list, with its title, scrolled to its top, with the focus on its heading. */
  function showPage(number, name, contents) {
    memory.list = table.leave() || memory.list;
    if (!page.overview.hidden) memory.scroll = window.scrollY;
    memory.shown = number;
    page.overview.hidden = true;
    page.case.hidden = false;
    document.title = name;
    page.case.replaceChildren(...contents(memory.list || "#").filter(Boolean));
    page.case.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    page.case.querySelector("h1").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  // Moving between cases replaces the address, so that Back leads to the table.
  page.case.addEventListener("click", (event) => {
    const step = event.target.closest("a[data-step]");
    if (step === null || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (step.hasAttribute("href")) go(step.getAttribute("href").slice(1), true);
  });
  addEventListener("hashchange", () => route());
  addEventListener("beforeprint", () => { if (!page.overview.hidden) table.print(); });
  try { history.scrollRestoration = "manual"; } catch { /* then the browser decides */ }

  linkToCases(page, table, go);
  linkOverview(byNumber, addressOf);
  listenToKeys(table, page);
  noteWhatIsLeftOut(run, cases);
  route();
}

/** A unique key of a case; JSON keeps its parts apart. */
function nameOf(id, suite, target) {
  return JSON.stringify([id, suite, target]);
}

/** Write an address to the history; false if the viewer does not allow it. */
function isWritten(address, isReplacing) {
  try {
    history[isReplacing ? "replaceState" : "pushState"](null, "", address);
    return true;
  } catch {
    return false;
  }
}

/** Links past the overview: to the table, and to what did not pass. */
function linkToCases(page, table, go) {
  const heading = document.getElementById("cases-title");
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (page.case.hidden ? heading : page.case.querySelector("h1")).focus();
  });
  document.getElementById("jump")?.addEventListener("click", (event) => {
    event.preventDefault();
    go(parametersOf({ ...NOTHING, verdict: ["error", "fail", "borderline"] }));
    heading.scrollIntoView();
    heading.focus({ preventScroll: true });
  });
}

/** Link the marks of the plot and the changes against the baseline to their cases. */
function linkOverview(byNumber, addressOf) {
  const plot = document.getElementById("scatter");
  if (plot !== null) {
    plot.classList.add("live");
    plot.addEventListener("click", (event) => {
      const mark = event.target.closest("[data-case]");
      const each = mark === null ? undefined : byNumber.get(Number(mark.dataset.case));
      if (each !== undefined) location.hash = addressOf(each, Number(mark.dataset.trial));
    });
  }
  for (const item of document.querySelectorAll("#changes [data-case]")) {
    const each = byNumber.get(Number(item.dataset.case));
    if (each !== undefined) item.replaceChildren(make("a", { href: addressOf(each) }, item.textContent));
  }
}

function noteWhatIsLeftOut(run, cases) {
  const left = [];
  if (run.texts < run.trials) left.push(`the texts of ${counted(run.trials - run.texts, "trial")} of ${count(run.trials)}`);
  if (cases.length < run.cases) left.push(`${counted(run.cases - cases.length, "case")} of ${count(run.cases)}`);
  if (left.length === 0) return;
  const note = document.getElementById("left-out");
  note.textContent = `Left out to keep this file small: ${left.join(", and ")}; passed ones first. `
    + "The results file has everything.";
  note.hidden = false;
}

start();
