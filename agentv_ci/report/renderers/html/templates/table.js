"use strict";

// The table of cases: search, filters, order, and rows that are made when they are needed.

const BY_NAME = new Intl.Collator("en", { numeric: true });
const ROWS_AT_ONCE = 100;
const MAX_PRINTED = 5000;
const CHOICES = ["suite", "target", "tag", "evaluator", "change", "view"];
const NOTHING = {
  q: "", verdict: [], ...Object.fromEntries(CHOICES.map((name) => [name, ""])), flaky: false, quarantine: false, errors: false,
  sort: "verdict", down: false,
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
    this.orders = ordersOf(run, cases);
    this.siblings = groupedBy(cases, (each) => nameOf(each.id, each.suite));
    this.hasSides = [...this.siblings.values()].some((group) => group.length > 1);
    this.head = make("thead");
    this.body = make("tbody", { on: { click: (event) => this.clicked(event) } });
    this.rows = make("table", { role: "table", "aria-labelledby": "cases-title" }, this.head, this.body);
    this.nothing = this.emptyState();
    this.rest = make("div", { class: "rest", hidden: true }, make("button", { type: "button", on: { click: () => this.more() } }));
    this.unprinted = make("p", { class: "unprinted" });
    this.filters = this.controls();
    const wide = make("div", { class: "wide" }, this.rows);
    this.element = make("div", { class: "table" }, this.filters, wide, this.nothing, this.rest, this.unprinted);
    const grow = (seen) => { if (seen.some((each) => each.isIntersecting)) this.more(); };
    this.watcher = new IntersectionObserver(grow, { rootMargin: "600px" });
  }

  controls() {
    this.search = this.searchBox();
    this.chips = this.chipsOf();
    const { suites, targets, tags, evaluators } = this.run;
    const choices = (names) => names.map((name) => [name, inline(name)]);
    const changes = CHANGES.filter((change) => this.cases.some((each) => each.change === change));
    this.selects = {
      suite: suites.length > 1 && this.select("suite", "Suite", "All suites", choices(suites)),
      target: targets.length > 1 && this.select("target", "Target", "All targets", choices(targets)),
      tag: tags.length > 0 && this.select("tag", "Tag", "All tags", choices(tags)),
      evaluator: evaluators.length > 0 && this.select("evaluator", "Evaluator that did not pass", "Any evaluator",
        evaluators.map((name) => [name, `${inline(name)} did not pass`])),
      change: changes.length > 0 && this.select("change", "Change against the baseline", "Any change", choices(changes)),
      view: this.hasSides && this.select("view", "View", "Targets side by side", [["list", "One row per answer"]]),
    };
    this.sorting = this.sortingOf();
    this.count = make("p", { class: "count", role: "status" });
    return make("div", { class: "filters", role: "search" },
      this.search,
      make("fieldset", {}, make("legend", { class: "quiet" }, "Verdicts"), this.chips.map(({ label }) => label)),
      make("span", { class: "break" }), Object.values(this.selects), this.sorting);
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
      [
        "in quarantine", "skipped", (each) => each.quarantine, (state) => state.quarantine,
        (isOn) => this.change({ quarantine: isOn }),
      ],
    ];
    return marks.map(([name, tone, is, isOn, listener]) => [name, tone, this.cases.filter(is).length, isOn, listener])
      .filter(([, , number]) => number > 0)
      .map(([name, tone, number, isOn, listener]) => ({ ...this.chip(name, number, tone, listener), isOn }));
  }

  sortingOf() {
    const orders = this.orders.flatMap(({ key, name }) => [
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
    for (const [name, select] of Object.entries(this.selects)) if (select) select.value = state[name];
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
      && (state.tag === "" || (each.tags || []).some((tag) => this.run.tags[tag] === state.tag))
      && (state.evaluator === "" || (each.misses || []).some((name) => this.run.evaluators[name] === state.evaluator))
      && (state.change === "" || each.change === state.change)
      && (!state.flaky || each.flaky)
      && (!state.quarantine || each.quarantine)
      && (!state.errors || hasErrors(each))
      && (words.length === 0 || this.mentions(each, words)));
    const order = this.orders.find(({ key }) => key === state.sort) || this.orders[0];
    const sign = state.down ? -1 : 1;
    const keyed = found.map((each) => [order.value(each), each]);
    // Cases without a value come last in both orders.
    keyed.sort(([a, one], [b, other]) => (a === null) - (b === null) || sign * compareValues(a, b)
      || (one.score ?? 0) - (other.score ?? 0) || one.n - other.n);
    return keyed.map(([, each]) => each);
  }

  mentions(each, words) {
    return words.every((word) => this.briefOf(each).includes(word)) || words.every((word) => this.textOf(each).includes(word));
  }

  briefOf(each) {
    each.brief ??= `${each.id}\n${this.run.suites[each.suite]}\n${this.run.targets[each.target]}\n${each.question || ""}\n${each.why || ""}`.toLowerCase();
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
    const { view, target, sort, down } = this.state;
    const isList = view === "list" || !this.hasSides;
    const columns = isList
      ? listColumns(this.run, this.orders, this.addressOf)
      : sideColumns(this.run, target, this.addressOf);
    this.items = isList
      ? this.found.map((each) => [each])
      : [...new Set(this.found.map((each) => this.siblings.get(nameOf(each.id, each.suite))))];
    // A head that stays as it is keeps the focus.
    if (String(columns.map(({ name }) => name)) !== String(this.columns?.map(({ name }) => name))) {
      this.headers = columns.map((column) => this.header(column));
      this.head.replaceChildren(make("tr", { role: "row" }, this.headers));
    }
    this.columns = columns;
    for (const [index, { key }] of columns.entries()) {
      if (sort === key) this.headers[index].setAttribute("aria-sort", down ? "descending" : "ascending");
      else this.headers[index].removeAttribute("aria-sort");
    }
    this.rendered = 0;
    this.body.replaceChildren();
    this.rows.className = `cases ${isList ? "list" : "side"}`;
    this.rows.hidden = this.found.length === 0;
    this.nothing.hidden = !this.rows.hidden;
    this.more();
  }

  /** The same case with other targets. */
  siblingsOf(each) {
    return this.siblings.get(nameOf(each.id, each.suite)).filter((other) => other !== each);
  }

  header({ key, name, note, isNumber }) {
    const sort = () => this.change({ sort: key, down: this.state.sort === key && !this.state.down });
    const isSortable = this.orders.some((order) => order.key === key);
    return make("th", { scope: "col", role: "columnheader", class: `${key ? `col-${key}` : ""} ${isNumber ? "number" : ""}`.trim() },
      isSortable ? make("button", { type: "button", on: { click: sort } }, name) : [name, note && [" ", make("small", {}, note)]]);
  }

  more(number = ROWS_AT_ONCE) {
    const next = this.items.slice(this.rendered, this.rendered + number);
    this.body.append(...next.map((item) => this.row(item)));
    this.rendered += next.length;
    const left = this.items.length - this.rendered;
    this.rest.hidden = left === 0;
    this.rest.firstChild.textContent = `Show ${count(Math.min(left, ROWS_AT_ONCE))} more of ${count(left)}`;
    this.watcher.disconnect();
    if (left > 0) this.watcher.observe(this.rest);
  }

  /** Show all rows for printing, or how many are left out. */
  print() {
    this.more(MAX_PRINTED - this.rendered);
    const left = this.items.length - this.rendered;
    this.unprinted.textContent = left > 0 ? `${counted(left, "more case")} not printed: filter the table to print them.` : "";
  }

  row(item) {
    const cells = this.columns.map(({ name, isHead, isNumber, caseOf, cell }) => {
      const content = cell(item);
      const kind = [isNumber && "number", content === "–" && "none"].filter(Boolean).join(" ");
      const given = { class: kind || null, "data-name": name, "data-case": caseOf?.(item)?.n };
      return isHead
        ? make("th", { ...given, scope: "row", role: "rowheader" }, content)
        : make("td", { ...given, role: "cell" }, content);
    });
    return make("tr", { role: "row", "data-case": this.columns.some(({ caseOf }) => caseOf) ? null : item[0].n }, cells);
  }

  clicked(event) {
    const place = event.target.closest("[data-case]");
    if (place === null || event.target.closest("a") || String(window.getSelection())) return;
    place.querySelector("a").click();
  }

  emptyState() {
    const clear = () => {
      this.leave();
      this.search.value = "";
      this.open(parametersOf({ ...NOTHING, view: this.state.view, sort: this.state.sort, down: this.state.down }));
      this.search.focus();
    };
    return make("div", { class: "empty", hidden: true },
      make("p", {}, this.cases.length === 0 ? "This run has no cases." : "No cases match."),
      this.cases.length > 0 && make("button", { type: "button", on: { click: clear } }, "Clear search and filters"));
  }

  /** Move the focus by some rows, or to the first row. */
  step(by) {
    const links = [...this.body.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("[data-case]").contains(document.activeElement));
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

  /** Render the row of a case, and put the focus on its link. */
  focus(number) {
    const at = this.items.findIndex((item) => item.some((each) => each.n === number));
    while (this.rendered <= at) this.more();
    this.body.querySelector(`[data-case="${number}"] a`)?.focus({ preventScroll: true });
  }
}

function compareValues(a, b) {
  if (typeof a === "string" && typeof b === "string") return BY_NAME.compare(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function optionsOf(choices) {
  return choices.map(([value, text]) => make("option", { value }, text));
}

function groupedBy(cases, keyOf) {
  const groups = new Map();
  for (const each of cases) {
    const key = keyOf(each);
    if (groups.has(key)) groups.get(key).push(each);
    else groups.set(key, [each]);
  }
  return groups;
}

function saidBy(trial) {
  const said = (results) => (results || []).flatMap((each) =>
    [...(each.hits || []), ...(each.misses || []), each.reasoning].map(charactersOf).concat(said(each.evaluator_results)));
  return [...(trial.misses || []), trial.reasoning].map(charactersOf).concat(said(trial.evaluator_results));
}

/** The view of an address; invalid parameters are ignored. */
function stateOf(parameters) {
  return {
    q: parameters.get("q") || "",
    verdict: (parameters.get("verdict") || "").split(",").filter((each) => VERDICTS.includes(each)),
    ...Object.fromEntries(CHOICES.map((name) => [name, parameters.get(name) || ""])),
    flaky: parameters.get("flaky") === "1",
    quarantine: parameters.get("quarantine") === "1",
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
  for (const name of CHOICES) if (state[name] !== "") parameters.set(name, state[name]);
  if (state.flaky) parameters.set("flaky", "1");
  if (state.quarantine) parameters.set("quarantine", "1");
  if (state.errors) parameters.set("errors", "1");
  if (state.sort !== NOTHING.sort || state.down) parameters.set("sort", state.sort);
  if (state.down) parameters.set("down", "1");
  return parameters;
}
