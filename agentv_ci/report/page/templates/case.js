"use strict";

// The page of one case: what was asked, what was answered, what was expected, and why it scored as it did.

/** Build the page; `around` knows its neighbours and addresses. */
function casePage(run, each, trial, around) {
  const numbers = each.trials ? each.trials.map(([number]) => number) : [1];
  const chosen = numbers.includes(trial) ? trial : numbers[0] ?? 1;
  const panel = make("div", { id: "trial" });
  const show = (number) => panel.replaceChildren(trialView(run, each, number, numbers.length > 1));
  show(chosen);
  const tabs = numbers.length > 1 ? trialTabs(each, chosen, panel, (number) => { show(number); around.chose(number); }) : null;
  if (tabs !== null) Object.entries({ role: "tabpanel", tabindex: "0", "aria-labelledby": `tab-${chosen}` }).forEach(([key, value]) => panel.setAttribute(key, value));
  return [caseBar(around), caseHead(run, each), tabs, panel];
}

function caseBar({ back, previous, next, place }) {
  const step = (address, text, key) => make("a", {
    class: "button", href: address, "aria-disabled": address === null ? "true" : null, "aria-keyshortcuts": key, role: address === null ? "link" : null,
    "data-step": key,
  }, text);
  return make("nav", { class: "case-bar", "aria-label": "Cases" },
    make("a", { class: "button", href: back, id: "back" }, "← All cases"),
    step(previous, "↑ Previous", "k"), step(next, "↓ Next", "j"),
    make("span", { class: "count" }, place));
}

function caseHead(run, each) {
  const where = inline(`${each.path ?? run.suites[each.suite]}:${each.line}`);
  const facts = [
    badge(each.verdict, "large"), each.flaky && make("span", { class: "flag" }, "≈ flaky"),
    each.score !== undefined && make("span", {}, "score ", make("b", {}, score(each.score))),
    each.link ? make("a", { href: each.link, rel: "noreferrer" }, where) : make("span", { class: "mono" }, where),
    make("span", {}, "target ", make("b", {}, inline(run.targets[each.target]))),
    each.trials && make("span", {}, trialsSentence(each)),
  ];
  return make("header", { class: "case-head" },
    make("h1", { tabindex: "-1" }, shown(each.id)),
    make("div", { class: "facts" }, facts),
    make("div", { class: "command" }, make("code", { tabindex: "0", "aria-label": "Command that runs this case again" }, inline(each.rerun)), copyButton(() => each.rerun, "Copy")));
}

function trialsSentence(each) {
  const ran = each.trials.length;
  const interval = each.interval ? ` (95%: ${percent(each.interval[0])} to ${percent(each.interval[1])})` : "";
  const missing = each.missing ? `, ${each.missing} never ran` : "";
  return ran === 0 ? "it never ran" : `${passesOf(each)} of ${counted(ran, "trial")} passed${interval}${missing}; ${REQUIRED[each.require]} must pass`;
}

const REQUIRED = { majority: "a majority", all: "all", any: "one" };

/** Tabs after the ARIA pattern: arrows move and choose, one of them is in the order of focus. */
function trialTabs(each, chosen, panel, choose) {
  const signs = { pass: "✓", borderline: "△", fail: "✗", error: "!" };
  const tabs = each.trials.map(([number, verdict, value]) => make("button", {
    type: "button", role: "tab", id: `tab-${number}`, "aria-controls": "trial", "aria-selected": String(number === chosen), tabindex: number === chosen ? "0" : "-1",
    on: { click: (event) => select(event.currentTarget, number) },
  }, make("span", { class: `mark-of ${verdict}`, "aria-hidden": "true" }, signs[verdict]), ` Trial ${number} `,
  make("small", {}, verdict === "error" ? "error" : `${verdict} ${score(value)}`)));
  function select(tab, number) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", tab.id);
    choose(number);
  }
  return make("div", { class: "tabs", role: "tablist", "aria-label": "Trials", on: { keydown: (event) => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.focus();
    tab.click();
  } } }, tabs);
}

function trialView(run, each, number, isOneOfSeveral) {
  const trial = dataOf(`trial-${each.n}-${number}`);
  const said = isOneOfSeveral ? (each.trials.find(([other]) => other === number) || [])[3] : each.why;
  if (trial === undefined) {
    const reason = each.idle ? "It never ran." : "The texts of this trial were left out, so that the file stays small enough to open. The results file has them.";
    return make("div", { class: "trial" }, make("div", {}, panelOf("What is known", make("p", {}, reason), said && textBox(said))), make("aside", {}, comparisonPanel(run, each)));
  }
  return make("div", { class: "trial" },
    make("div", {}, errorPanel(trial), conversationPanel(trial), answerPanel(trial), expectedPanel(trial), evaluatorsPanel(trial), tracePanel(trial)),
    make("aside", { "aria-label": "Figures" }, comparisonPanel(run, each), numbersPanel(each, trial), dataPanel(trial)));
}

function panelOf(title, ...children) {
  return make("section", { class: "panel" }, make("div", { class: "section-head" }, make("h2", {}, title)), children);
}

function errorPanel(trial) {
  if (!trial.error) return null;
  return panelOf(["Error ", make("small", {}, trial.error_kind || "")], textBox(trial.error, "boxed code"),
    trial.stdout && make("div", {}, make("h3", {}, "Printed to stdout"), textBox(trial.stdout, "boxed code")),
    trial.stderr && make("div", {}, make("h3", {}, "Printed to stderr"), textBox(trial.stderr, "boxed code")));
}

function conversationPanel(trial) {
  if (!trial.input) return null;
  return panelOf("Conversation", trial.input.map((turn) => make("div", { class: `turn ${turn.role === "assistant" ? "assistant" : ""}` },
    make("h3", {}, inline(`${turn.role || ""}${turn.name ? ` (${turn.name})` : ""}`)), textBox(turn.text, ""))));
}

/** The answer against the good one: as a difference, or each on its own. */
function answerPanel(trial) {
  const answer = charactersOf(trial.answer);
  const reference = charactersOf(trial.reference);
  if (!answer && trial.error && !reference) return null;
  const holder = make("div");
  const empty = () => make("p", { class: "note" }, "The answer is empty.");
  const views = {
    Difference: () => differenceView(trial),
    Answer: () => (answer ? textBox(trial.answer) : empty()),
    Expected: () => textBox(trial.reference),
  };
  const buttons = reference ? Object.keys(views).map((name) => make("button", { type: "button", "aria-pressed": "false", on: { click: () => show(name) } }, name)) : [];
  function show(name) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === name));
    holder.replaceChildren(views[name]());
  }
  show(reference && answer ? "Difference" : "Answer");
  return make("section", { class: "panel", id: "answer" },
    make("div", { class: "section-head" }, make("h2", {}, "Answer"), make("div", { class: "buttons" }, buttons, answer && copyButton(() => answer, "Copy answer"))), holder);
}

function differenceView(trial) {
  const answer = charactersOf(trial.answer);
  const reference = charactersOf(trial.reference);
  const { form, parts } = compareTexts(reference, answer);
  if (form === "same") return make("div", {}, make("p", { class: "note" }, "The answer is the expected one, word for word."), textBox(trial.answer));
  if (form === "apart") {
    return make("div", { class: "apart" }, make("div", {}, make("h3", {}, "Expected"), textBox(trial.reference)), make("div", {}, make("h3", {}, "Answer"), textBox(trial.answer)));
  }
  const kinds = { gone: "del", come: "ins" };
  const nodes = parts.map(([kind, text]) => (kind === "same" ? shown(text) : make(kinds[kind], {}, shown(text)))).flat();
  const legend = make("p", { class: "more" }, make("del", {}, "expected, not answered"), " · ", make("ins", {}, "answered, not expected"));
  return make("div", {}, textBox(parts.map(([, text]) => text).join(""), "boxed", nodes), legend);
}

function expectedPanel(trial) {
  return trial.expected ? panelOf("Expected outcome", textBox(trial.expected, "")) : null;
}

function evaluatorsPanel(trial) {
  if (!trial.evaluators) {
    if (!trial.misses && !trial.hits && !trial.reasoning) return null;
    return panelOf("Verdict", pointsOf(trial), trial.reasoning && textBox(trial.reasoning, "reasoning"));
  }
  return panelOf("Evaluators", evaluatorList(trial.evaluators));
}

function evaluatorList(results) {
  return make("ul", { class: "evaluators" }, results.map((each) => make("li", {},
    make("div", { class: "evaluator-head" },
      badge(each.verdict), make("h3", {}, make("bdi", {}, inline(each.name))), make("small", {}, inline(each.type)),
      each.required && make("span", { class: "label" }, "required"), each.weight !== 1 && make("small", {}, `weight ${each.weight}`),
      make("span", { class: "score" }, each.score !== undefined && scoreBar(each.score, each.verdict), score(each.score))),
    pointsOf(each),
    each.reasoning && textBox(each.reasoning, "reasoning"),
    each.raw && folded("Raw response", textBox(each.raw, "boxed code")),
    each.stderr && folded("Standard error", textBox(each.stderr, "boxed code")),
    each.members && evaluatorList(each.members))));
}

function pointsOf({ hits = [], misses = [] }) {
  if (hits.length + misses.length === 0) return null;
  const point = (kind, word) => (text) => make("li", { class: kind }, make("div", {}, make("span", { class: "quiet" }, word), textBox(text, "")));
  return make("ul", { class: "points" }, misses.map(point("miss", "missed: ")), hits.map(point("hit", "met: ")));
}

function tracePanel(trial) {
  if (trial.turns && trial.turns.some((turn) => turn.calls || charactersOf(turn.text) !== charactersOf(trial.answer))) {
    return panelOf("Tool calls and turns", trial.turns.map((turn) => make("div", { class: `turn ${turn.role === "assistant" ? "assistant" : ""}` },
      make("h3", {}, inline(turn.role)), turn.text && textBox(turn.text, ""),
      (turn.calls || []).map((call) => make("details", {}, make("summary", {}, make("code", {}, inline(call.tool)), " ", make("small", {}, brief(call.input))),
        call.input && make("div", {}, make("h3", {}, "Input"), textBox(call.input, "boxed code")),
        call.output && make("div", {}, make("h3", {}, "Output"), textBox(call.output, "boxed code")))))));
  }
  if (!trial.calls) return null;
  const failed = trial.failed_calls ? `; ${trial.failed_calls} failed` : "";
  return panelOf("Tool calls",
    make("p", {}, Object.entries(trial.calls).map(([tool, times]) => [make("code", {}, inline(tool)), ` × ${times}   `]), failed),
    make("p", { class: "more" }, "Run with ", make("code", {}, "--include-trace"), " to keep each call with its input and output."));
}

function brief(text) {
  const line = inline(charactersOf(text));
  return line.length > 90 ? `${line.slice(0, 90)}…` : line;
}

function comparisonPanel(run, each) {
  if (!each.change) return null;
  const side = (rate) => {
    if (!rate) return "–";
    const [verdict, passed, graded, mean] = rate;
    if (graded === 0 || mean === null) return "no verdict";
    return graded === 1 ? `${verdict} ${score(mean)}` : `${passed}/${graded} passed, mean ${score(mean)}`;
  };
  const level = `${Math.round(run.confidence * 100)}% interval`;
  return panelOf("Baseline", make("p", {}, changeBadge(each.change)), list([
    ["Before", each.base && side(each.base)], ["Now", each.head && side(each.head)],
    [level, each.low !== undefined && `${signedPercent(each.low)} to ${signedPercent(each.high)}`],
  ]), each.single && make("p", { class: "more" }, "One trial a side: possibly noise."),
  each.stale && make("p", { class: "more" }, "The case or its target has changed since."));
}

function list(pairs) {
  return make("dl", { class: "numbers" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "")
    .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function numbersPanel(each, { figures }) {
  const tokens = (usage) => usage && [
    usage.input_tokens !== undefined && `${count(usage.input_tokens)} in`, usage.output_tokens !== undefined && `${count(usage.output_tokens)} out`,
    usage.cached_tokens && `${count(usage.cached_tokens)} cached`,
    usage.input_tokens === undefined && usage.output_tokens === undefined && usage.total_tokens !== undefined && count(usage.total_tokens),
  ].filter(Boolean).join(", ");
  const dollars = (value) => (value === undefined ? null : money(value));
  return panelOf("Figures", list([
    ["Provider", inline(figures.provider)], ["Model", figures.model && inline(figures.model)],
    ["Time", duration(figures.duration_ms)], ["Tokens", tokens(figures.usage)], ["Cost", dollars(figures.cost_usd)],
    ["Judge tokens", tokens(figures.judge_usage)], ["Judge cost", dollars(figures.judge_cost_usd)],
    ["Attempts", figures.attempts > 1 && String(figures.attempts)], ["Requests", String(figures.requests)],
    ["Ended because", figures.finish_reason && inline(figures.finish_reason)],
    ["From the cache", figures.cached && "yes"], ["Secret masked", figures.masked && "yes"], ["Seed", figures.seed],
    ["Conversation", figures.conversation && inline(figures.conversation)], ["Ended at", inline((figures.timestamp || "").replace("T", " ").replace(/\.\d+Z$/, " UTC"))],
    ["Digest", figures.digest && make("code", { title: figures.digest }, figures.digest.slice(0, 12))],
  ]));
}

function dataPanel(trial) {
  if (!trial.metadata && !trial.request) return null;
  return make("section", { class: "panel" },
    trial.metadata && folded("Metadata", textBox(trial.metadata, "boxed code")),
    trial.request && folded("Request", textBox(trial.request, "boxed code")));
}
