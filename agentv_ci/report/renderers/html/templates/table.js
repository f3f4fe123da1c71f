"use strict";

// The table of cases: search, filters, order, and rows that are made when they are needed.

const VERDICTS = ["error", "fail", "borderline", "pass"];
const CHANGES = ["regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"];
const BY_NAME = new Intl.Collator("en", { numeric: true });
const ROWS_AT_ONCE = 100;
const MAX_PRINTED = 5000;
const NOTHING = {
  q: "", verdict: [], suite: "", target: "", change: "", flaky: false, errors: false, sort: "verdict", down: false,
};

class CaseTable {
  /** `open` is called with the parameters of another view, and whether it replaces the present one. */
  constructor(run, cases, { open, addressOf }) {
    this.run = run;
    this.cases = cases;
    this.open = open;
    this.addressOf = addressOf;
    this.state = NOTHING;
    this.found = cases;
    this.texts = new Map();
    this.columns = this.columnsOf();
    this.body = make("tbody", { on: { click: (event) => this.clicked(event) } });
    this.headers = this.columns.map((column) => this.header(column));
    const head = make("thead", {}, make("tr", { role: "row" }, this.headers));
    this.rows = make("table", { class: "cases", role: "table", "aria-labelledby": "cases-title" }, head, this.body);
    this.nothing = this.emptyState();
    this.rest = make("div", { class: "rest", hidden: true }, make("button", { type: "button", on: { click: () => this.more() } }));
    this.unprinted = make("p", { class: "unprinted" });
    this.filters = this.controls();
    this.element = make("div", { class: "table" }, this.filters, this.rows, this.nothing, this.rest, this.unprinted);
    const grow = (seen) => { if (seen.some((each) => each.isIntersecting)) this.more(); };
    this.watcher = new IntersectionObserver(grow, { rootMargin: "600px" });
  }

  columnsOf() {
    const has = (name) => this.cases.some((each) => each[name] !== undefined);
    const order = (list, name) => (each) => list.indexOf(each[name]);
    const number = (name) => (each) => each[name] ?? null;
    const isRepeated = this.cases.some((each) => each.trials && each.trials.length > 1);
    return [
      { key: "verdict", name: "Verdict", value: order(VERDICTS, "verdict"), cell: (each) => this.verdictCell(each) },
      { key: "id", name: "Case", value: (each) => each.id, cell: (each) => this.caseCell(each) },
      {
        key: "target", name: "Target", value: (each) => each.target, cell: (each) => inline(this.run.targets[each.target]),
        hidden: this.run.targets.length < 2,
      },
      {
        key: "change", name: "Baseline", value: order(CHANGES, "change"), cell: (each) => changeBadge(each.change),
        hidden: !has("change"),
      },
      {
        key: "trials", name: "Trials", title: "Passed, of the trials with a verdict", value: passRate, cell: trialsText,
        hidden: !has("trials"), number: true,
      },
      { key: "score", name: "Score", value: number("score"), cell: scoreCell, number: true },
      {
        key: "ms", name: isRepeated ? "Mean time" : "Time", title: isRepeated ? "Average per trial" : null,
        value: number("ms"), cell: (each) => duration(each.ms), number: true,
      },
      {
        key: "cost", name: isRepeated ? "Total cost" : "Cost", title: "Answers and judges, all trials together",
        value: number("cost"), cell: (each) => money(each.cost), hidden: !has("cost"), number: true,
      },
    ].filter((column) => !column.hidden);
  }

  controls() {
    this.search = this.searchBox();
    this.chips = this.chipsOf();
    const choices = (names) => names.map((name) => [name, inline(name)]);
    const seen = CHANGES.filter((change) => this.cases.some((each) => each.change === change));
    this.suite = this.select("suite", "Suite", "All suites", choices(this.run.suites));
    this.target = this.select("target", "Target", "All targets", choices(this.run.targets));
    this.changed = this.select("change", "Change against the baseline", "Any change", seen.map((change) => [change, change]));
    this.sorting = this.sortingOf();
    this.count = make("p", { class: "count", role: "status" });
    return make("div", { class: "filters", role: "search" },
      this.search,
      make("fieldset", {}, make("legend", { class: "quiet" }, "Verdicts"), this.chips.map(({ label }) => label)),
      make("span", { class: "break" }),
      this.run.suites.length > 1 && this.suite, this.run.targets.length > 1 && this.target, seen.length > 0 && this.changed,
      make("span", { class: "sorting" }, this.sorting), this.count);
  }

  searchBox() {
    const search = make("input", {
      type: "search", placeholder: "Search id, suite, answer, reason", "aria-label": "Search the cases",
      "aria-keyshortcuts": "/", spellcheck: "false", autocomplete: "off",
    });
    this.typing = 0;
    search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => { this.typing = 0; this.change({ q: search.value }, true); }, 120);
    });
    return search;
  }

  chipsOf() {
    const toggled = (verdict) => (isOn) => {
      const others = this.state.verdict.filter((each) => each !== verdict);
      this.change({ verdict: isOn ? [...others, verdict] : others });
    };
    const marks = [
      ...VERDICTS.map((verdict) => [
        verdict, verdict, (each) => each.verdict === verdict, (state) => state.verdict.includes(verdict), toggled(verdict),
      ]),
      ["errors in trials", "error", hasErrors, (state) => state.errors, (isOn) => this.change({ errors: isOn })],
      ["flaky", "borderline", (each) => each.flaky, (state) => state.flaky, (isOn) => this.change({ flaky: isOn })],
    ];
    return marks.map(([name, tone, is, isOn, listener]) => [name, tone, this.cases.filter(is).length, isOn, listener])
      .filter(([, , number]) => number > 0)
      .map(([name, tone, number, isOn, listener]) => ({ ...this.chip(name, number, tone, listener), isOn }));
  }

  sortingOf() {
    const orders = this.columns.flatMap(({ key, name }) => [
      [key, `Sort by ${name.toLowerCase()}`], [`-${key}`, `Sort by ${name.toLowerCase()}, backwards`],
    ]);
    const listener = (event) => {
      const value = event.target.value;
      this.change({ sort: value.replace(/^-/, ""), down: value.startsWith("-") });
    };
    return make("select", { "aria-label": "Order", on: { change: listener } }, optionsOf(orders));
  }

  chip(name, number, tone, listener) {
    const box = make("input", { type: "checkbox", on: { change: () => listener(box.checked) } });
    return { box, label: make("label", { class: `chip ${tone}` }, box, make("span", {}, `${name} `, make("b", {}, count(number)))) };
  }

  select(key, name, all, choices) {
    const listener = (event) => this.change({ [key]: event.target.value });
    return make("select", { "aria-label": name, on: { change: listener } }, optionsOf([["", all], ...choices]));
  }

  change(given, isReplacing = false) {
    this.open(parametersOf({ ...this.state, ...given }), isReplacing);
  }

  /** Cancel pending search input; returns the address it would have led to, null if there was none. */
  leave() {
    if (!this.typing) return null;
    clearTimeout(this.typing);
    this.typing = 0;
    return `#${parametersOf({ ...this.state, q: this.search.value })}`;
  }

  /** Show the view of an address. Controls are updated, not rebuilt: they would lose the focus. */
  show(state) {
    this.state = state;
    if (this.search.value !== state.q && !this.typing) this.search.value = state.q;
    for (const { box, isOn } of this.chips) box.checked = isOn(state);
    this.suite.value = state.suite;
    this.target.value = state.target;
    this.changed.value = state.change;
    this.sorting.value = (state.down ? "-" : "") + state.sort;
    this.found = this.selected(state);
    const all = this.cases.length === this.run.cases ? "" : ` (of ${count(this.run.cases)} in the run)`;
    this.count.textContent = `${count(this.found.length)} of ${counted(this.cases.length, "case")}${all}`;
    this.render();
  }

  selected(state) {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.cases.filter((each) =>
      (state.verdict.length === 0 || state.verdict.includes(each.verdict))
      && (state.suite === "" || this.run.suites[each.suite] === state.suite)
      && (state.target === "" || this.run.targets[each.target] === state.target)
      && (state.change === "" || each.change === state.change)
      && (!state.flaky || each.flaky)
      && (!state.errors || hasErrors(each))
      && (words.length === 0 || this.mentions(each, words)));
    const column = this.columns.find(({ key }) => key === state.sort) || this.columns[0];
    const sign = state.down ? -1 : 1;
    const keyed = found.map((each) => [column.value(each), each]);
    // Cases without a value come last in both orders.
    keyed.sort(([a, one], [b, other]) => (a === null) - (b === null) || sign * compareValues(a, b)
      || (one.score ?? 0) - (other.score ?? 0) || one.n - other.n);
    return keyed.map(([, each]) => each);
  }

  mentions(each, words) {
    return words.every((word) => this.briefOf(each).includes(word)) || words.every((word) => this.textOf(each).includes(word));
  }

  briefOf(each) {
    each.brief ??= `${each.id}\n${this.run.suites[each.suite]}\n${this.run.targets[each.target]}\n${each.why || ""}`.toLowerCase();
    return each.brief;
  }

  /** All searchable text of a case, read on first use. */
  textOf(each) {
    let text = this.texts.get(each.n);
    if (text === undefined) {
      const trials = (each.trials || [[1]]).map(([number]) => dataOf(`trial-${each.n}-${number}`)).filter(Boolean);
      const said = trials.flatMap((trial) => [charactersOf(trial.candidate_answer), charactersOf(trial.error), ...saidBy(trial)]);
      text = [this.briefOf(each), ...said].join("\n").toLowerCase();
      this.texts.set(each.n, text);
    }
    return text;
  }

  render() {
    this.rendered = 0;
    this.body.replaceChildren();
    this.rows.hidden = this.found.length === 0;
    this.nothing.hidden = !this.rows.hidden;
    for (const [index, { key }] of this.columns.entries()) {
      const isSorted = this.state.sort === key;
      if (isSorted) this.headers[index].setAttribute("aria-sort", this.state.down ? "descending" : "ascending");
      else this.headers[index].removeAttribute("aria-sort");
    }
    this.more();
  }

  header({ key, name, title, number }) {
    const sort = () => this.change({ sort: key, down: this.state.sort === key && !this.state.down });
    return make("th", { scope: "col", role: "columnheader", class: `col-${key}${number ? " number" : ""}` },
      make("button", { type: "button", title, on: { click: sort } }, name));
  }

  more(number = ROWS_AT_ONCE) {
    const next = this.found.slice(this.rendered, this.rendered + number);
    this.body.append(...next.map((each) => this.row(each)));
    this.rendered += next.length;
    const left = this.found.length - this.rendered;
    this.rest.hidden = left === 0;
    this.rest.firstChild.textContent = `Show ${count(Math.min(left, ROWS_AT_ONCE))} more of ${count(left)}`;
    this.watcher.disconnect();
    if (left > 0) this.watcher.observe(this.rest);
  }

  /** Show all rows for printing, or how many are left out. */
  print() {
    this.more(MAX_PRINTED - this.rendered);
    const left = this.found.length - this.rendered;
    this.unprinted.textContent = left > 0 ? `${counted(left, "more case")} not printed: filter the table to print them.` : "";
  }

  row(each) {
    return make("tr", { role: "row", "data-case": each.n }, this.columns.map((column) => {
      const cell = column.cell(each);
      const kind = [column.number && "number", cell === "–" && "none"].filter(Boolean).join(" ");
      const given = { role: "cell", class: kind || null, "data-name": column.name };
      return column.key === "id" ? make("th", { ...given, scope: "row", role: "rowheader" }, cell) : make("td", given, cell);
    }));
  }

  verdictCell(each) {
    return [badge(each.verdict), each.flaky && make("span", { class: "flag" }, " ≈ flaky")];
  }

  caseCell(each) {
    return [
      make("a", { href: this.addressOf(each) }, visibleName(each.id)),
      make("span", { class: "place" }, placeOf(this.run, each)),
      each.why && each.verdict !== "pass" && make("div", { class: "why" }, inline(each.why)),
    ];
  }

  clicked(event) {
    const row = event.target.closest("tr");
    if (row === null || event.target.closest("a") || String(window.getSelection())) return;
    row.querySelector("a").click();
  }

  emptyState() {
    const clear = () => {
      this.leave();
      this.search.value = "";
      this.open(parametersOf({ ...NOTHING, sort: this.state.sort, down: this.state.down }));
      this.search.focus();
    };
    return make("div", { class: "empty", hidden: true },
      make("p", {}, this.cases.length === 0 ? "This run has no cases." : "No cases match."),
      this.cases.length > 0 && make("button", { type: "button", on: { click: clear } }, "Clear search and filters"));
  }

  /** Move the focus by some rows, or to the first row. */
  step(by) {
    const links = [...this.body.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
    if (next) {
      // The sticky filter bar covers the top.
      const bar = getComputedStyle(this.filters).position === "sticky" ? this.filters.offsetHeight : 0;
      document.documentElement.style.scrollPaddingTop = `${bar + 12}px`;
      next.focus({ preventScroll: true });
      next.closest("tr").scrollIntoView({ block: "nearest" });
    }
    if (at + by > this.rendered - 5) this.more();
  }

  /** Render the row of a case, and put the focus on it. */
  focus(number) {
    const at = this.found.findIndex((each) => each.n === number);
    if (at < 0) return;
    while (this.rendered <= at) this.more();
    this.body.children[at].querySelector("a").focus({ preventScroll: true });
  }
}

function compareValues(a, b) {
  if (typeof a === "string" && typeof b === "string") return BY_NAME.compare(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function optionsOf(choices) {
  return choices.map(([value, text]) => make("option", { value }, text));
}

/** How many trials of a case have this verdict. */
function numberOf(each, verdict) {
  return (each.trials || []).filter(([, other]) => other === verdict).length;
}

/** How many trials of a case have a verdict. */
function gradedOf(each) {
  return (each.trials || []).length - numberOf(each, "error");
}

/** Whether a case has a verdict but some of its trials do not. */
function hasErrors(each) {
  return each.verdict !== "error" && numberOf(each, "error") > 0;
}

function passRate(each) {
  return gradedOf(each) > 0 ? numberOf(each, "pass") / gradedOf(each) : null;
}

function trialsText(each) {
  const graded = gradedOf(each);
  const errors = numberOf(each, "error");
  const said = [graded > 0 && `${numberOf(each, "pass")}/${graded}`, errors > 0 && counted(errors, "error")];
  return said.filter(Boolean).join(" · ") || "–";
}

/** The place of a case; the line comes last even in a right-to-left path. */
function placeOf(run, each) {
  return [make("bdi", {}, inline(each.path ?? run.suites[each.suite])), `:${each.line}`];
}

function scoreCell(each) {
  return each.score === undefined ? "–" : make("span", { class: "score" }, scoreBar(each.score, each.verdict), score(each.score));
}

function saidBy(trial) {
  const said = (results) => (results || []).flatMap((each) =>
    [...(each.hits || []), ...(each.misses || []), each.reasoning].map(charactersOf).concat(said(each.evaluator_results)));
  return [...(trial.misses || []), trial.reasoning].map(charactersOf).concat(said(trial.evaluator_results));
}

function changeBadge(change) {
  return change === undefined ? "–" : make("span", { class: `change ${change.replaceAll(" ", "-")}` }, change);
}

/** The view of an address; invalid parameters are ignored. */
function stateOf(parameters) {
  return {
    q: parameters.get("q") || "",
    verdict: (parameters.get("verdict") || "").split(",").filter((each) => VERDICTS.includes(each)),
    suite: parameters.get("suite") || "",
    target: parameters.get("target") || "",
    change: parameters.get("change") || "",
    flaky: parameters.get("flaky") === "1",
    errors: parameters.get("errors") === "1",
    sort: parameters.get("sort") || NOTHING.sort,
    down: parameters.get("down") === "1",
  };
}

/** The parameters of a view, without defaults. */
function parametersOf(state) {
  const parameters = new URLSearchParams();
  if (state.q) parameters.set("q", state.q);
  if (state.verdict.length > 0) parameters.set("verdict", state.verdict.join(","));
  for (const name of ["suite", "target", "change"]) if (state[name] !== "") parameters.set(name, state[name]);
  if (state.flaky) parameters.set("flaky", "1");
  if (state.errors) parameters.set("errors", "1");
  if (state.sort !== NOTHING.sort || state.down) parameters.set("sort", state.sort);
  if (state.down) parameters.set("down", "1");
  return parameters;
}
