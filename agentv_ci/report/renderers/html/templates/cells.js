"use strict";

// The columns of the table of cases: one row per answer, or one per case with its targets side by side.

const VERDICTS = ["error", "fail", "borderline", "not run", "skipped", "pass"];
const CHANGES = ["regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"];

/** The orders of the table. Cases without a value come last. */
function ordersOf(run, cases) {
  const has = (name) => cases.some((each) => each[name] !== undefined);
  const verdicts = new Map();
  const verdictsOf = (each) => verdicts.get(nameOf(each.id, each.suite));
  for (const each of cases) {
    if (verdictsOf(each) === undefined) verdicts.set(nameOf(each.id, each.suite), new Set());
    verdictsOf(each).add(each.verdict);
  }
  const isRepeated = cases.some((each) => each.trials && each.trials.length > 1);
  return [
    { key: "verdict", name: "Verdict", value: (each) => VERDICTS.indexOf(each.verdict) },
    { key: "id", name: "Case", value: (each) => each.id },
    run.targets.length > 1 && { key: "differs", name: "Targets that differ", value: (each) => -verdictsOf(each).size },
    run.targets.length > 1 && { key: "target", name: "Target", value: (each) => each.target },
    has("change") && { key: "change", name: "Baseline", value: (each) => CHANGES.indexOf(each.change) },
    has("trials") && { key: "trials", name: "Trials passed", value: passRate },
    { key: "score", name: "Score", value: (each) => each.score ?? null },
    { key: "ms", name: isRepeated ? "Mean time" : "Time", value: (each) => each.ms ?? null },
    has("cost") && { key: "cost", name: isRepeated ? "Total cost" : "Cost", value: (each) => each.cost ?? null },
  ].filter(Boolean);
}

/** The columns of one row per answer; those with a place among the orders have a button that sorts. */
function listColumns(run, orders, addressOf) {
  const nameOfOrder = (key) => orders.find((order) => order.key === key)?.name;
  return [
    { key: "verdict", name: nameOfOrder("verdict"), cell: ([each]) => verdictCell(each) },
    { key: "id", name: nameOfOrder("id"), isHead: true, cell: ([each]) => caseCell(run, each, addressOf(each)) },
    { key: "answer", name: "Answer", cell: ([each]) => [whyOf(each), clamped("answer", each.answer)] },
    { key: "target", name: nameOfOrder("target"), cell: ([each]) => breakable(inline(run.targets[each.target])) },
    { key: "score", name: nameOfOrder("score"), cell: ([each]) => [scoreCell(each), trialsNote(each)], isNumber: true },
    { key: "ms", name: nameOfOrder("ms"), cell: ([each]) => duration(each.ms), isNumber: true },
    { key: "cost", name: nameOfOrder("cost"), cell: ([each]) => money(each.cost), isNumber: true },
  ].filter(({ name }) => name !== undefined);
}

/** The columns of one row per case: the question, and the answer of each target. */
function sideColumns(run, chosen, addressOf) {
  const targets = run.targets.map((name, target) => ({ name, target })).filter(({ name }) => chosen === "" || name === chosen);
  return [
    { key: "id", name: "Case", isHead: true, cell: ([each]) => caseCell(run, each) },
    ...targets.map(({ name, target }) => {
      const caseOf = (item) => item.find((each) => each.target === target);
      return { name: inline(name), note: inline(run.models[target]), caseOf, cell: (item) => resultCell(caseOf(item), addressOf) };
    }),
  ];
}

function verdictCell(each) {
  return [badge(each.verdict), flagsOf(each)];
}

/** Whether a case is flaky or does not gate, and how it differs from the baseline. */
function flagsOf(each) {
  const isFlaky = each.flaky && each.change !== "flaky";
  return [
    isFlaky && make("span", { class: "flag" }, "≈ flaky"),
    each.quarantine && make("span", { class: "flag" }, "in quarantine"),
    each.change && each.change !== "unchanged" && changeBadge(each.change),
  ];
}

function caseCell(run, each, address) {
  const name = breakable(visibleName(each.id));
  return [
    address === undefined ? make("b", {}, name) : make("a", { href: address }, name),
    make("span", { class: "place" }, placeOf(run, each)), clamped("question", each.question), tagsOf(run, each),
  ];
}

/** What one target made of a case. */
function resultCell(each, addressOf) {
  if (each === undefined) return "–";
  return [
    make("div", { class: "result" },
      make("a", { href: addressOf(each) }, make("span", { class: "quiet" }, `${visibleName(each.id)}: `), badge(each.verdict)),
      each.score !== undefined && scoreCell(each), trialsNote(each), flagsOf(each)),
    whyOf(each), clamped("answer", each.answer),
    make("div", { class: "spent" }, [duration(each.ms), each.cost !== undefined && money(each.cost)].filter(Boolean).join(" · ")),
  ];
}

function clamped(kind, text) {
  return text ? make("div", { class: kind }, inline(text)) : null;
}

function tagsOf(run, each) {
  return each.tags && make("div", { class: "tags" }, each.tags.map((tag) => make("span", { class: "tag" }, inline(run.tags[tag]))));
}

function whyOf(each) {
  return each.why && each.verdict !== "pass" && make("div", { class: `why ${each.verdict}` }, inline(each.why));
}

/** The place of a case; the line comes last even in a right-to-left path. */
function placeOf(run, each) {
  return [make("bdi", {}, breakable(inline(each.path ?? run.suites[each.suite]))), `:${each.line}`];
}

function scoreCell(each) {
  return each.score === undefined ? "–" : make("span", { class: "score" }, scoreBar(each.score, each.verdict), score(each.score));
}

function trialsNote(each) {
  return each.trials && each.trials.length > 0 && make("small", { class: "trials" }, trialsText(each));
}

function changeBadge(change) {
  return change === undefined ? "–" : make("span", { class: `change ${change.replaceAll(" ", "-")}` }, change);
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
  const said = [graded > 0 && `${numberOf(each, "pass")}/${graded} passed`, errors > 0 && counted(errors, "error")];
  return said.filter(Boolean).join(" · ");
}
