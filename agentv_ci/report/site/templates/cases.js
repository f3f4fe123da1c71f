"use strict";

// The table of cases, with what each did in every run.

const VERDICTS = { p: "pass", b: "borderline", f: "fail", e: "error" };
/** The bars of a cell, each with its lower end and its height: an error is a gap between two. */
const BARS = { p: [[1, 0.45]], b: [[1, 0.7]], f: [[1, 1]], e: [[1, 0.3], [0.3, 0.3]] };
const PAGE_OF_CASES = 500;
const NOW = { "": "All cases", bad: "Not passing now", flaky: "Flaky", found: "With findings or in quarantine", gone: "Not in the newest run" };

/** What a case did last. */
function newestOf(each) {
  const letters = each.verdicts.replaceAll(".", "");
  return VERDICTS[letters.at(-1)];
}

function passedRuns(each) {
  // A run without a score is one that says nothing of the agent; in one that crashed, it is 0.
  const graded = (each.score || []).filter((score) => score !== null);
  return [each.verdicts.replaceAll(/[^p]/g, "").length, graded.length];
}

/** Whether trials of one run disagreed, in any run. */
function isFlaky(each) {
  return (each.graded || []).some((graded, number) => graded !== null && each.passed[number] > 0 && each.passed[number] < graded);
}

const BADNESS = { fail: 0, error: 1, borderline: 2, pass: 3 };

function worstFirst(cases) {
  const rank = (each) => {
    const [passed, ran] = passedRuns(each);
    return [each.verdicts.endsWith(".") ? 1 : 0, BADNESS[newestOf(each)], ran === 0 ? 0 : passed / ran];
  };
  return cases.map((each) => [rank(each), each]).sort(([one], [other]) => {
    const at = one.findIndex((value, index) => value !== other[index]);
    return at < 0 ? 0 : one[at] - other[at];
  }).map(([, each]) => each);
}

function barsOf(letter, start, length) {
  return BARS[letter].map(([low, height]) => `M${start} ${low}v-${height}h${length}v${height}z`).join("");
}

/** A row of cells: a case passes low, everything else stands out by its shape as well as by its color. */
function heatOf(each, runs) {
  const [passed, ran] = passedRuns(each);
  const paths = Object.entries(VERDICTS).map(([letter, name]) => {
    const stretches = [...each.verdicts.matchAll(new RegExp(`${letter}+`, "g"))];
    if (stretches.length === 0) return null;
    return draw("path", { class: name, d: stretches.map((found) => barsOf(letter, found.index, found[0].length)).join("") });
  });
  return draw("svg", { class: "heat", viewBox: `0 0 ${runs.length} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `passed ${count(passed)} of ${counted(ran, "graded run")}` }, paths);
}

function axisOf(runs) {
  const labels = monthsOf(runs, 10).map(([number, label]) => draw("text", { x: `${100 * number / runs.length}%`, y: 11 }, label));
  return draw("svg", { class: "months", "aria-hidden": "true" }, labels);
}

function keyOf() {
  return make("ul", { class: "key" }, Object.entries(VERDICTS).map(([letter, name]) => make("li", {},
    draw("svg", { class: "heat", viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("path", { class: name, d: barsOf(letter, 0, 1) })), ` ${name}`)));
}

/** The section of cases: filters, and the table, the worst first. */
function casesOf(runs, cases, addressOf) {
  const ordered = worstFirst(cases);
  const search = make("input", { type: "search", "aria-label": "Search the cases", placeholder: "Search the cases" });
  const suite = selectOf("Suite", ["", ...new Set(cases.map((each) => each.suite))].map((each) => [each, each === "" ? "All suites" : inline(each)]));
  const target = selectOf("Target", ["", ...new Set(cases.map((each) => each.target))].map((each) => [each, each === "" ? "All targets" : inline(each)]));
  const state = selectOf("State", Object.entries(NOW));
  const found = make("span", { class: "count", role: "status" });
  const body = make("tbody");
  const rest = make("div", { class: "rest" });
  const fits = {
    "": () => true,
    bad: (each) => !each.verdicts.endsWith(".") && newestOf(each) !== "pass",
    flaky: isFlaky,
    found: (each) => each.marks !== undefined,
    gone: (each) => each.verdicts.endsWith("."),
  };
  const row = (each) => {
    const [passed, ran] = passedRuns(each);
    return make("tr", {},
      make("th", { scope: "row" }, make("a", { href: addressOf(each) }, breakable(visibleName(each.id))), make("br"),
        make("small", {}, breakable(inline(each.suite)), " · ", inline(each.target))),
      make("td", {}, heatOf(each, runs)),
      make("td", { class: "col-now-cell" }, each.verdicts.endsWith(".") ? badge("not run") : badge(newestOf(each))),
      make("td", { class: "number" }, ran === 0 ? "–" : percent(passed / ran)),
      make("td", {}, (each.marks || []).map((kind) => make("small", { class: "tag" }, kind))));
  };
  const show = (isAll) => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = ordered.filter((each) => (suite.value === "" || each.suite === suite.value)
      && (target.value === "" || each.target === target.value) && fits[state.value](each)
      && words.every((word) => `${each.id} ${each.suite} ${each.target}`.toLowerCase().includes(word)));
    const shownCases = isAll ? matching : matching.slice(0, PAGE_OF_CASES);
    body.replaceChildren(...shownCases.map(row));
    found.textContent = matching.length === cases.length ? counted(cases.length, "case") : `${count(matching.length)} of ${counted(cases.length, "case")}`;
    rest.replaceChildren(...(shownCases.length === matching.length ? [] : [
      make("button", { type: "button", on: { click: () => show(true) } }, `Show ${count(matching.length - shownCases.length)} more`)]));
  };
  for (const control of [suite, target, state]) control.addEventListener("change", () => show(false));
  search.addEventListener("input", () => show(false));
  show(false);
  return make("div", {},
    make("div", { class: "filters" }, search, suite, target, state, found),
    keyOf(),
    make("div", { class: "panel flush" }, make("table", { class: "tracks" },
      make("thead", {}, make("tr", {},
        make("th", { scope: "col", class: "col-name" }, "Case"),
        make("th", { scope: "col" }, make("span", { class: "quiet" }, "Runs"), axisOf(runs)),
        make("th", { scope: "col", class: "col-now" }, "Newest"),
        make("th", { scope: "col", class: "col-share number" }, "Passed"),
        make("th", { scope: "col", class: "col-marks" }, "Marks"))),
      body)),
    rest);
}

function selectOf(name, choices) {
  return make("select", { "aria-label": name }, choices.map(([value, text]) => make("option", { value }, text)));
}
