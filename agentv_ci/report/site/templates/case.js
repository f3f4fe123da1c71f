"use strict";

// The page of one case: its plots, and its runs, the newest first.

const PAGE_OF_RUNS = 60;

/** The figures of a case for its plots; with several trials a run, its pass rate has an interval. */
function figuresOf(each, intervals) {
  const parted = (side) => each.graded?.map((graded, number) => intervals[`${each.passed[number]}/${graded}`]?.[side] ?? null);
  const rate = each.graded?.map((graded, number) => (graded ? each.passed[number] / graded : null));
  return {
    rate: rate ?? null,
    low: parted(0) ?? null,
    high: parted(1) ?? null,
    score: each.score ?? null,
    cost: each.cost ?? null,
    ms: each.ms ?? null,
    edits: each.edits ?? [],
  };
}

/** The elements of the page. */
function casePage(runs, each, intervals, back) {
  const ran = [...each.verdicts].flatMap((letter, number) => (letter === "." ? [] : [number])).reverse();
  const body = make("tbody", {}, ran.slice(0, PAGE_OF_RUNS).map((number) => runRow(runs, each, number)));
  const more = ran.length <= PAGE_OF_RUNS ? null : make("button", { type: "button", on: { click: () => {
    body.replaceChildren(...ran.map((number) => runRow(runs, each, number)));
    more.remove();
  } } }, `Show ${count(ran.length - PAGE_OF_RUNS)} more`);
  const [passed, graded] = passedRuns(each);
  return [
    make("div", { class: "case-bar" }, make("a", { class: "button", href: back, id: "back" }, "← All cases")),
    make("div", { class: "case-head" },
      make("h1", { tabindex: "-1" }, badge(newestOf(each), "large"), " ", visibleName(each.id)),
      make("p", { class: "note" }, breakable(inline(each.suite)), " · ", inline(each.target)),
      make("p", {}, `Passed ${count(passed)} of ${counted(graded, "graded run")}`,
        (each.marks || []).map((kind) => [" ", make("small", { class: "tag" }, kind)]))),
    heatOf(each, runs),
    keyOf(),
    make("div", { class: "trends" }, chartsOf(runs, "", figuresOf(each, intervals))),
    make("section", { class: "panel" }, make("h2", {}, "Runs"),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" }, make("table", { class: "runs" },
        make("thead", {}, make("tr", {}, ["Time", "Verdict", "Trials", "Score", "Cost", "Took", "Model", "Commit", "Run"].map((name, index) => (
          make("th", { scope: "col", class: index > 1 && index < 6 ? "number" : null }, name))))),
        body)),
      make("div", { class: "rest" }, more)),
  ];
}

function runRow(runs, each, number) {
  const [time, commit, address] = runs[number];
  const trials = each.graded ? `${each.passed[number]}/${each.graded[number]}` : "";
  const model = (each.models || []).filter(([from]) => from <= number).at(-1)?.[1];
  return make("tr", {},
    make("th", { scope: "row" }, time.replace("T", " ").replace("Z", " UTC")),
    make("td", {}, badge(VERDICTS[each.verdicts[number]]), each.edits?.includes(number) && make("small", {}, " the case changed")),
    make("td", { class: "number" }, trials),
    make("td", { class: "number" }, score(each.score?.[number])),
    make("td", { class: "number" }, money(each.cost?.[number])),
    make("td", { class: "number" }, duration(each.ms?.[number])),
    make("td", {}, model === undefined ? "" : inline(model)),
    make("td", {}, commit === null ? "" : make("code", {}, inline(commit.slice(0, 12)))),
    make("td", {}, address === null ? "" : make("a", { href: address, rel: "noreferrer" }, "run")));
}
