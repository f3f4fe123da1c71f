"use strict";

// Why an answer did not pass, and what every evaluator found.

const MAX_SETTINGS = 240;
const WHY = { fail: "Why it failed", borderline: "Why it is borderline", error: "Why there is no verdict" };

/** The first panel: the error of a trial, and the evaluators that it did not pass. */
function whyPanel(trial, verdict) {
  if (verdict === "pass") return null;
  const missed = (trial.evaluator_results || []).filter(isMissed);
  const said = [
    trial.error && textBox(trial.error, "boxed code", { name: "Error" }),
    printedBox("stdout", trial.printed?.stdout), printedBox("stderr", trial.printed?.stderr),
    missed.length > 0 ? evaluatorList(missed) : findingsOf(trial),
  ];
  return make("section", { class: `panel why-panel ${verdict}`, id: "why" },
    make("h2", {}, WHY[verdict], trial.error_kind && make("small", {}, trial.error_kind)), said);
}

function isMissed({ verdict }) {
  return verdict !== "pass" && verdict !== "skipped";
}

function printedBox(name, text) {
  return text && make("div", {}, make("h3", {}, `Printed to ${name}`), textBox(text, "boxed code", { name }));
}

/** The evaluators that are not in the first panel. */
function evaluatorsPanel(trial) {
  const results = trial.evaluator_results || [];
  const others = results.filter((each) => !isMissed(each));
  return others.length > 0 && panelOf(others.length < results.length ? "Other evaluators" : "Evaluators", evaluatorList(others));
}

function evaluatorList(results) {
  return make("ul", { class: "evaluators" }, results.map((each) => make("li", {},
    evaluatorHead(each),
    settingsOf(each),
    findingsOf(each),
    foldedText("Question to the judge", each.judge_prompt),
    foldedText(each.judge_prompt ? "Reply of the judge" : "Raw response", each.raw_response),
    foldedText("Standard error", each.stderr),
    each.evaluator_results && evaluatorList(each.evaluator_results))));
}

function evaluatorHead(each) {
  const value = each.status === "ok" ? each.score : undefined;
  return make("div", { class: "evaluator-head" },
    badge(each.verdict), make("h3", {}, make("bdi", {}, inline(each.name))), make("small", {}, inline(each.type)),
    each.required && make("span", { class: "label" }, "required"), each.weight !== 1 && make("small", {}, `weight ${each.weight}`),
    make("span", { class: "score" }, value !== undefined && scoreBar(value, each.verdict), score(value)));
}

/** The settings of an evaluator: short ones at once. */
function settingsOf({ settings }) {
  const text = inline(charactersOf(settings));
  let pairs;
  try {
    pairs = Object.entries(JSON.parse(text));
  } catch {
    pairs = [];
  }
  if (pairs.length === 0 || text.length > MAX_SETTINGS) return foldedText("Settings", settings);
  const shownValue = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return make("ul", { class: "settings" }, pairs.map(([name, value]) => make("li", {}, `${name}: `, make("code", {}, shownValue(value)))));
}

/** What an answer misses and meets, and the explanation. */
function findingsOf({ hits = [], misses = [], reasoning }) {
  const point = (kind, word) => (text) =>
    make("li", { class: kind }, make("div", {}, make("span", { class: "quiet" }, word), textBox(text, "", { name: word })));
  return [
    hits.length + misses.length > 0
      && make("ul", { class: "points" }, misses.map(point("miss", "missed: ")), hits.map(point("hit", "met: "))),
    reasoning && textBox(reasoning, "reasoning", { name: "Reasoning" }),
  ];
}

function foldedText(name, text) {
  return text && folded(name, textBox(text, "boxed code", { name }));
}
