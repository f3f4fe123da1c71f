"use strict";

// The table of cases: search, filters, order, and rows that are made as they are needed.

const VERDICTS = ["error", "fail", "borderline", "pass"];
const CHANGES = ["regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"];
const BY_NAME = new Intl.Collator("en", { numeric: true });
const ROWS_AT_ONCE = 100;
const NOTHING = { q: "", verdict: [], suite: "", target: "", change: "", flaky: false, sort: "verdict", down: false };

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
    this.element = make("div", { class: "table" }, this.controls(), make("div", {}));
    this.watcher = new IntersectionObserver((seen) => { if (seen.some((each) => each.isIntersecting)) this.more(); }, { rootMargin: "600px" });
  }

  columnsOf() {
    const has = (name) => this.cases.some((each) => each[name] !== undefined);
    const order = (list, name) => (each) => list.indexOf(each[name]);
    const number = (name) => (each) => each[name] ?? null;
    return [
      { key: "verdict", name: "Verdict", value: order(VERDICTS, "verdict"), cell: (each) => this.verdictCell(each) },
      { key: "id", name: "Case", value: (each) => each.id, cell: (each) => this.caseCell(each) },
      { key: "target", name: "Target", value: (each) => each.target, cell: (each) => inline(this.run.targets[each.target]), hidden: this.run.targets.length < 2 },
      { key: "change", name: "Baseline", value: order(CHANGES, "change"), cell: (each) => changeBadge(each.change), hidden: !has("change") },
      { key: "trials", name: "Trials", value: passRate, cell: (each) => each.trials ? `${passesOf(each)}/${each.trials.length}` : "–", hidden: !has("trials"), number: true },
      { key: "score", name: "Score", value: number("score"), cell: (each) => scoreCell(each), number: true },
      { key: "ms", name: "Time", value: number("ms"), cell: (each) => duration(each.ms), number: true },
      { key: "cost", name: "Cost", value: number("cost"), cell: (each) => money(each.cost), hidden: !has("cost"), number: true },
    ].filter((column) => !column.hidden);
  }

  controls() {
    const listen = (name, read) => (event) => this.change({ [name]: read(event.target) });
    this.search = make("input", {
      type: "search", placeholder: "Search id, suite, answer, reason", "aria-label": "Search the cases", "aria-keyshortcuts": "/", spellcheck: "false", autocomplete: "off",
    });
    this.typing = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => { this.typing = 0; this.change({ q: this.search.value }, true); }, 120);
    });
    const number = (is) => this.cases.filter(is).length;
    this.chips = VERDICTS.map((verdict) => [verdict, number((each) => each.verdict === verdict)])
      .filter(([, there]) => there > 0)
      .map(([verdict, there]) => this.chip(verdict, there, verdict, (box) => this.toggle(verdict, box.checked)));
    const flaky = number((each) => each.flaky);
    this.flaky = flaky ? this.chip("flaky", flaky, "borderline", (box) => this.change({ flaky: box.checked })) : null;
    const choices = (names) => names.map((name) => [name, inline(name)]);
    this.suite = this.select("Suite", "All suites", choices(this.run.suites), listen("suite", (box) => box.value));
    this.target = this.select("Target", "All targets", choices(this.run.targets), listen("target", (box) => box.value));
    const seen = CHANGES.filter((change) => this.cases.some((each) => each.change === change));
    this.changed = this.select("Change against the baseline", "Any change", seen.map((change) => [change, change]), listen("change", (box) => box.value));
    const orders = this.columns.map(({ key, name }) => [[key, `Sort by ${name.toLowerCase()}`], [`-${key}`, `Sort by ${name.toLowerCase()}, backwards`]]).flat();
    this.sorting = this.select("Order", null, orders, (event) => {
      const value = event.target.value;
      this.change({ sort: value.replace(/^-/, ""), down: value.startsWith("-") });
    });
    this.count = make("p", { class: "count", role: "status" });
    return make("div", { class: "filters", role: "search" },
      this.search,
      make("fieldset", {}, make("legend", { class: "quiet" }, "Verdicts"), this.chips.map(({ label }) => label), this.flaky && this.flaky.label),
      make("span", { class: "break" }),
      this.run.suites.length > 1 && this.suite, this.run.targets.length > 1 && this.target, seen.length > 0 && this.changed,
      make("span", { class: "sorting" }, this.sorting), this.count);
  }

  chip(name, number, tone, listener) {
    const box = make("input", { type: "checkbox", on: { change: () => listener(box) } });
    return { name, box, label: make("label", { class: `chip ${tone}` }, box, make("span", {}, `${name} `, make("b", {}, count(number)))) };
  }

  select(name, all, choices, listener) {
    const options = all === null ? choices : [["", all], ...choices];
    return make("select", { "aria-label": name, on: { change: listener } }, options.map(([value, text]) => make("option", { value }, text)));
  }

  toggle(verdict, isOn) {
    const others = this.state.verdict.filter((each) => each !== verdict);
    this.change({ verdict: isOn ? [...others, verdict] : others });
  }

  change(given, isReplacing = false) {
    this.open(parametersOf({ ...this.state, ...given }), isReplacing);
  }

  /** Show what an address says. */
  show(state) {
    this.state = state;
    if (this.search.value !== state.q && !this.typing) this.search.value = state.q;
    for (const { name, box } of this.chips) box.checked = state.verdict.includes(name);
    if (this.flaky) this.flaky.box.checked = state.flaky;
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
      && (words.length === 0 || this.mentions(each, words)));
    const column = this.columns.find(({ key }) => key === state.sort) || this.columns[0];
    const sign = state.down ? -1 : 1;
    const keyed = found.map((each) => [column.value(each), each]);
    // What has no value stands at the end, whichever way.
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

  /** Everything that can be searched, read when it is needed for the first time. */
  textOf(each) {
    let text = this.texts.get(each.n);
    if (text === undefined) {
      const trials = (each.trials || [[1]]).map(([number]) => dataOf(`trial-${each.n}-${number}`)).filter(Boolean);
      text = [this.briefOf(each), ...trials.flatMap((trial) => [charactersOf(trial.answer), charactersOf(trial.error), ...saidBy(trial)])].join("\n").toLowerCase();
      this.texts.set(each.n, text);
    }
    return text;
  }

  render() {
    this.watcher.disconnect();
    this.rendered = 0;
    this.body = make("tbody");
    const rest = make("button", { type: "button", on: { click: () => this.more() } });
    this.rest = make("div", { class: "rest", hidden: true }, rest);
    const content = this.found.length === 0 ? this.emptyState() : make("table", { class: "cases", role: "table", "aria-labelledby": "cases-title" },
      this.head(), this.body);
    this.element.replaceChildren(this.element.firstChild, make("div", {}, content, this.rest));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.more();
  }

  head() {
    return make("thead", {}, make("tr", { role: "row" }, this.columns.map((column) => {
      const isSorted = this.state.sort === column.key;
      const sort = () => { this.change({ sort: column.key, down: isSorted && !this.state.down }); this.element.querySelector(`.col-${column.key} button`).focus(); };
      return make("th", {
        scope: "col", role: "columnheader", class: `col-${column.key}${column.number ? " number" : ""}`,
        "aria-sort": isSorted ? (this.state.down ? "descending" : "ascending") : null,
      }, make("button", { type: "button", on: { click: sort } }, column.name));
    })));
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

  row(each) {
    return make("tr", { role: "row", "data-case": each.n }, this.columns.map((column) => {
      const cell = column.cell(each);
      const given = { role: "cell", class: [column.number && "number", column.class, cell === "–" && "none"].filter(Boolean).join(" "), "data-name": column.name };
      return column.key === "id" ? make("th", { ...given, scope: "row", role: "rowheader" }, cell) : make("td", given, cell);
    }));
  }

  verdictCell(each) {
    return [badge(each.verdict), each.flaky && make("span", { class: "flag" }, " ≈ flaky")];
  }

  caseCell(each) {
    const place = `${inline(each.path ?? this.run.suites[each.suite])}:${each.line}`;
    return [
      make("a", { href: this.addressOf(each) }, inline(each.id)), make("span", { class: "place" }, place),
      each.why && each.verdict !== "pass" && make("div", { class: "why" }, inline(each.why)),
    ];
  }

  clicked(event) {
    const row = event.target.closest("tr");
    if (row === null || event.target.closest("a") || String(window.getSelection())) return;
    row.querySelector("a").click();
  }

  emptyState() {
    return make("div", { class: "empty" },
      make("p", {}, this.cases.length === 0 ? "This run has no cases." : "No case is like that."),
      this.cases.length > 0 && make("button", { type: "button", on: { click: () => { this.search.value = ""; this.open(parametersOf({ ...NOTHING, sort: this.state.sort, down: this.state.down })); this.search.focus(); } } }, "Clear search and filters"));
  }

  /** Put the focus on another row; from nowhere on the first. */
  step(by) {
    const links = [...this.body.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
    if (at + by > this.rendered - 5) this.more();
  }

  /** Make sure that the row of a case is there, and put the focus on it. */
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

function passesOf(each) {
  return each.trials.filter(([, verdict]) => verdict === "pass").length;
}

function passRate(each) {
  return each.trials && each.trials.length > 0 ? passesOf(each) / each.trials.length : null;
}

function scoreCell(each) {
  return each.score === undefined ? "–" : make("span", { class: "score" }, scoreBar(each.score, each.verdict), score(each.score));
}

function saidBy(trial) {
  const said = (results) => (results || []).flatMap((each) =>
    [...(each.hits || []), ...(each.misses || []), each.reasoning].map(charactersOf).concat(said(each.members)));
  return [...(trial.misses || []), trial.reasoning].map(charactersOf).concat(said(trial.evaluators));
}

function changeBadge(change) {
  return change === undefined ? "–" : make("span", { class: `change ${change.replaceAll(" ", "-")}` }, change);
}

/** The view that an address means, as far as it makes sense. */
function stateOf(parameters) {
  return {
    q: parameters.get("q") || "",
    verdict: (parameters.get("verdict") || "").split(",").filter((each) => VERDICTS.includes(each)),
    suite: parameters.get("suite") || "",
    target: parameters.get("target") || "",
    change: parameters.get("change") || "",
    flaky: parameters.get("flaky") === "1",
    sort: parameters.get("sort") || NOTHING.sort,
    down: parameters.get("down") === "1",
  };
}

/** The address of a view: only what is not as usual. */
function parametersOf(state) {
  const parameters = new URLSearchParams();
  if (state.q) parameters.set("q", state.q);
  if (state.verdict.length > 0) parameters.set("verdict", state.verdict.join(","));
  for (const name of ["suite", "target", "change"]) if (state[name] !== "") parameters.set(name, state[name]);
  if (state.flaky) parameters.set("flaky", "1");
  if (state.sort !== NOTHING.sort || state.down) parameters.set("sort", state.sort);
  if (state.down) parameters.set("down", "1");
  return parameters;
}
