"use strict";

// The page of one case: why it did not pass, question, answer, expected answer, evaluators, and figures.

const REQUIRED = { majority: "a majority", all: "all", any: "one" };
const SIGNS = { pass: "✓", borderline: "△", fail: "✗", error: "!" };

/** The numbers of a case's trials. */
function trialsOf(each) {
  return each.trials && each.trials.length > 0 ? each.trials.map(([number]) => number) : [1];
}

/** The number of the trial that explains the verdict. */
function shownTrial(each) {
  return each.shown ?? 1;
}

/** Build the page; `around` has the addresses of its neighbours, and of the same case with other targets. */
function casePage(run, each, trial, around) {
  const numbers = trialsOf(each);
  const chosen = numbers.includes(trial) ? trial : shownTrial(each);
  const panel = make("div", { id: "trial" });
  const show = (number) => panel.replaceChildren(trialView(run, each, number));
  show(chosen);
  if (numbers.length === 1) return [caseBar(around), caseHead(run, each, around.others), panel];
  for (const [key, value] of [["role", "tabpanel"], ["tabindex", "0"], ["aria-labelledby", `tab-${chosen}`]]) {
    panel.setAttribute(key, value);
  }
  const tabs = trialTabs(each, chosen, panel, (number) => { show(number); around.chose(number); });
  return [caseBar(around), caseHead(run, each, around.others), tabs, panel];
}

function caseBar({ back, previous, next, place }) {
  const step = (address, text, key) => make("a", {
    class: "button", href: address, "aria-disabled": address === null ? "true" : null, "aria-keyshortcuts": key,
    role: address === null ? "link" : null, "data-step": key,
  }, text);
  return make("nav", { class: "case-bar", "aria-label": "Cases" },
    make("a", { class: "button", href: back, id: "back" }, "← All cases"),
    step(previous, "↑ Previous", "k"), step(next, "↓ Next", "j"),
    make("span", { class: "count" }, place));
}

function caseHead(run, each, others) {
  const place = placeOf(run, each);
  const siblings = others.map(([other, address]) => [
    ", ", make("a", { href: address }, `${inline(run.targets[other.target])}: ${other.verdict}`),
  ]);
  const facts = [
    badge(each.verdict, "large"), each.flaky && make("span", { class: "flag" }, "≈ flaky"),
    each.quarantine && make("span", {}, inline(each.quarantine)),
    each.score !== undefined && make("span", {}, "score ", make("b", {}, score(each.score))),
    each.link ? make("a", { href: each.link, rel: "noreferrer" }, place) : make("span", { class: "mono" }, place),
    make("span", {}, "target ", make("b", {}, inline(run.targets[each.target])), siblings),
    each.trials && make("span", {}, trialsSentence(run, each)),
  ];
  const command = make("code", { tabindex: "0", role: "region", "aria-label": "Command that runs this case again" }, inline(each.rerun));
  return make("header", { class: "case-head" },
    make("h1", { tabindex: "-1" }, each.id.trim() === "" ? visibleName(each.id) : shown(each.id)),
    make("div", { class: "facts" }, facts),
    ...(each.rerun ? [make("div", { class: "command" }, command, copyButton(() => each.rerun, "Copy"))] : []));
}

function trialsSentence(run, each) {
  const errors = numberOf(each, "error");
  const graded = gradedOf(each);
  if (each.trials.length === 0) return run.missing;
  const of = errors > 0 ? `${count(graded)} graded` : counted(graded, "trial");
  const interval = each.interval ? ` (95%: ${percent(each.interval[0])} to ${percent(each.interval[1])})` : "";
  const passed = graded > 0 && `${numberOf(each, "pass")} of ${of} passed${interval}`;
  const said = [passed, errors > 0 && counted(errors, "error"), each.missing && `${each.missing} ${run.missing}`];
  return `${said.filter(Boolean).join(", ")}${each.require ? `; ${REQUIRED[each.require]} must pass` : ""}`;
}

/** Tabs in the ARIA pattern: arrows move and select; only the selected tab is in the tab order. */
function trialTabs(each, chosen, panel, choose) {
  const tabs = each.trials.map(([number, verdict, value]) => make("button", {
    type: "button", role: "tab", id: `tab-${number}`, "aria-controls": "trial", "aria-selected": String(number === chosen),
    tabindex: number === chosen ? "0" : "-1", on: { click: (event) => select(event.currentTarget, number) },
  }, make("span", { class: `mark-of ${verdict}`, "aria-hidden": "true" }, SIGNS[verdict]), ` Trial ${number} `,
  make("small", {}, verdict === "error" ? "error" : `${verdict} ${score(value)}`)));
  function select(tab, number) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", tab.id);
    choose(number);
  }
  function move(event) {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.focus();
    tab.click();
  }
  return make("div", { class: "tabs", role: "tablist", "aria-label": "Trials", on: { keydown: move } }, tabs);
}

function trialView(run, each, number) {
  if (each.verdict === "skipped") return make("div", { class: "trial" }, panelOf("Skipped", textBox(each.why, "boxed")));
  const trial = dataOf(`trial-${each.n}-${number}`);
  if (trial === undefined) return unknownTrial(run, each, number);
  return make("div", { class: "trial" },
    make("div", {}, whyPanel(trial, verdictOf(each, number)), conversationPanel(trial), answerPanel(trial), expectedPanel(trial),
      changesPanel(trial), evaluatorsPanel(trial), tracePanel(trial)),
    make("aside", { "aria-label": "Figures" }, comparisonPanel(run, each), numbersPanel(trial), dataPanel(trial)));
}

function verdictOf(each, number) {
  return each.trials?.find(([other]) => other === number)?.[1] ?? each.verdict;
}

function unknownTrial(run, each, number) {
  const said = each.trials ? (each.trials.find(([other]) => other === number) || [])[3] : each.why;
  const reason = each.idle
    ? (each.verdict === "not run" ? "The run was stopped before this case." : "This case has no result.")
    : "The texts of this trial were left out to keep the file small. The results file has them.";
  return make("div", { class: "trial" },
    make("div", {}, panelOf("What is known", make("p", {}, reason), said && textBox(said, "boxed"))),
    make("aside", { "aria-label": "Figures" }, comparisonPanel(run, each)));
}

function turnOf(turn, name, ...children) {
  return make("div", { class: turn.role === "assistant" ? "turn assistant" : "turn" }, make("h3", {}, inline(name)), children);
}

function conversationPanel(trial) {
  if (!trial.input_messages) return null;
  const guidelines = Object.entries(dataOf("guidelines") || {});
  return panelOf("Conversation", trial.input_messages.map((turn) => {
    const name = `${turn.role || ""}${turn.name ? ` (${turn.name})` : ""}`;
    const attached = guidelines.filter(([path]) => charactersOf(turn.content).includes(`<Attached: ${path}>`));
    return turnOf(turn, name, textBox(turn.content, "", { name: inline(name) || "Turn" }),
      attached.map(([path, text]) => foldedText(`Guideline ${inline(path)}`, text)));
  }));
}

/** The answer and the expected one: as a difference, or each on its own. */
function answerPanel(trial) {
  const answer = charactersOf(trial.candidate_answer);
  const reference = charactersOf(trial.reference_answer);
  if (!answer && trial.error && !reference) return null;
  const holder = make("div");
  const none = () => make("p", { class: "note" }, trial.error ? "There is no answer." : "The answer is empty.");
  const views = {
    Difference: () => differenceView(trial),
    Answer: () => (answer ? textBox(trial.candidate_answer, "boxed", { name: "Answer" }) : none()),
    Expected: () => textBox(trial.reference_answer, "boxed", { name: "Expected" }),
  };
  const button = (name) => make("button", { type: "button", "aria-pressed": "false", on: { click: () => show(name) } }, name);
  const buttons = reference ? Object.keys(views).map(button) : [];
  function show(name) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === name));
    holder.replaceChildren(views[name]());
  }
  show(reference && answer ? "Difference" : "Answer");
  const tools = make("div", { class: "buttons" }, buttons, answer && copyButton(() => answer, "Copy answer"));
  return make("section", { class: "panel", id: "answer" }, make("div", { class: "section-head" }, make("h2", {}, "Answer"), tools), holder);
}

function differenceView(trial) {
  const { form, parts } = compareAnswers(plain(charactersOf(trial.reference_answer)), plain(charactersOf(trial.candidate_answer)));
  if (form === "apart") {
    return make("div", { class: "apart" },
      make("div", {}, make("h3", {}, "Expected"), textBox(trial.reference_answer, "boxed", { name: "Expected" })),
      make("div", {}, make("h3", {}, "Answer"), textBox(trial.candidate_answer, "boxed", { name: "Answer" })));
  }
  const cuts = [cutNote(trial.reference_answer, "Only part of the expected answer was compared"), cutNote(trial.candidate_answer)];
  if (form === "same") {
    const same = cuts.some(Boolean)
      ? "The part of the answer that was kept is the same as that of the expected one."
      : "The answer is the expected one, word for word.";
    return make("div", {}, make("p", { class: "note" }, same), textBox(trial.candidate_answer, "boxed", { name: "Answer" }), cuts[0]);
  }
  if (form === "equal") {
    const equal = "The answer has the data of the expected one, written otherwise.";
    return make("div", {}, make("p", { class: "note" }, equal), textBox(trial.candidate_answer, "boxed code", { name: "Answer" }));
  }
  const kinds = { removed: "del", added: "ins" };
  const nodes = parts.map(([kind, text]) => (kind === "same" ? shown(text) : make(kinds[kind], {}, shown(text)))).flat();
  const legend = make("p", { class: "more" }, make("del", {}, "expected, not answered"), " · ", make("ins", {}, "answered, not expected"));
  const text = parts.map(([, part]) => part).join("");
  const kind = form === "data" ? "boxed code" : "boxed";
  return make("div", {}, textBox(text, kind, { name: "Difference", nodes }), cuts, legend);
}

function expectedPanel(trial) {
  return trial.expected_outcome ? panelOf("Expected outcome", textBox(trial.expected_outcome, "", { name: "Expected outcome" })) : null;
}

/** What the agent left behind in its workspace. */
function changesPanel({ workspace }) {
  if (!workspace) return null;
  const { changed = [], withheld = [] } = workspace;
  const confined = workspace.network === "off" ? `${workspace.isolation}, no network` : workspace.isolation;
  return make("section", { class: "panel", id: "changes" },
    make("h2", {}, "Changes ", make("small", {}, counted(changed.length, "file"))),
    list([["Isolation", confined], ["Kept in", workspace.kept && inline(workspace.kept)]]),
    workspace.diff && textBox(workspace.diff, "boxed code", { name: "Diff" }),
    withheld.length > 0 && foldedText("Not given to graders", withheld.join("\n")));
}

function tracePanel(trial) {
  const turns = trial.output_messages || [];
  const answer = charactersOf(trial.candidate_answer);
  if (turns.some((turn) => turn.tool_calls || charactersOf(turn.content) !== answer)) {
    return panelOf("Tool calls and turns", turns.map((turn) => turnOf(turn, turn.role,
      turn.content && textBox(turn.content, "", { name: "Turn" }), (turn.tool_calls || []).map(callDetails))));
  }
  const { tool_calls_by_name: calls, error_count: errors } = trial.trace_summary || {};
  if (!calls) return null;
  const times = Object.entries(calls).map(([tool, number]) => [make("code", {}, inline(tool)), ` × ${number}   `]);
  const failed = errors ? `; ${errors} failed` : "";
  return panelOf("Tool calls",
    make("p", { class: "calls" }, times, failed),
    make("p", { class: "more" }, "Run without ", make("code", {}, "--no-trace"), " to keep each call with its input and output."));
}

function callDetails(call) {
  const part = (name, text) => text && make("div", {}, make("h3", {}, name), textBox(text, "boxed code", { name }));
  return folded([make("code", {}, inline(call.tool)), " ", make("small", {}, brief(call.input))],
    part("Input", call.input), part("Output", call.output));
}

function brief(text) {
  const line = inline(charactersOf(text));
  return line.length > 90 ? `${line.slice(0, 90)}…` : line;
}

function comparisonPanel(run, each) {
  if (!each.change) return null;
  const level = `${percent(run.confidence)} interval`;
  return panelOf("Baseline", make("p", {}, changeBadge(each.change)), list([
    ["Before", each.base && rateText(each.base)], ["Now", each.head && rateText(each.head)],
    [level, each.low !== undefined && `${signedPercent(each.low)} to ${signedPercent(each.high)}`],
  ]), answerBefore(each.answer_before), each.single && make("p", { class: "more" }, "One trial a side: this may be chance."),
  each.stale && make("p", { class: "more" }, "The case or its target has changed since."));
}

/** An answer that passed before, to read beside those of this run. */
function answerBefore(shown) {
  if (!shown) return null;
  const tools = (shown.tool_calls || []).join(", ");
  return make("div", {}, make("h3", {}, "An answer before"),
    shown.answer ? textBox(shown.answer, "boxed", { name: "An answer before" }) : make("p", {}, inline(shown.error || "It was empty.")),
    tools && make("p", { class: "calls" }, "Called ", make("code", {}, inline(tools))));
}

/** How often a case passed on one side, of its graded trials. */
function rateText({ verdict, passed, graded, mean }) {
  if (graded === 0 || mean === null) return verdict === "skipped" ? "skipped" : "no verdict";
  return graded === 1 ? `${verdict} ${score(mean)}` : `${passed}/${graded} passed, mean ${score(mean)}`;
}

function tokensText(usage) {
  if (!usage) return null;
  const { input_tokens: given, output_tokens: made, cached_tokens: cached, total_tokens: total } = usage;
  if (given === undefined && made === undefined) return total === undefined ? null : count(total);
  const said = [
    given !== undefined && `${count(given)} in`, made !== undefined && `${count(made)} out`, cached && `${count(cached)} cached`,
  ];
  return said.filter(Boolean).join(", ");
}

function numbersPanel(trial) {
  const dollars = (value) => (value === undefined ? null : money(value));
  const text = (value) => (value ? inline(value) : null);
  return panelOf("Figures", list([
    ["Provider", text(trial.provider)], ["Model", text(trial.model)],
    ["Time", duration(trial.duration_ms)], ["Tokens", tokensText(trial.usage)], ["Cost", dollars(trial.cost_usd)],
    ["Judge tokens", tokensText(trial.judge_usage)], ["Judge cost", dollars(trial.judge_cost_usd)],
    ["Attempts", trial.attempts > 1 && String(trial.attempts)], ["Requests", String(trial.requests)],
    ["Ended because", text(trial.finish_reason)],
    ["From the cache", trial.cached && "yes"], ["Secret masked", trial.masked && "yes"], ["Seed", trial.seed],
    ["Conversation", text(trial.conversation_id)],
    ["Ended at", inline((trial.timestamp || "").replace("T", " ").replace(/\.\d+Z$/, " UTC"))],
    ["Digest", trial.digest && make("code", { title: trial.digest }, trial.digest.slice(0, 12))],
  ]));
}

function dataPanel(trial) {
  if (!trial.metadata && !trial.request) return null;
  const part = (name, text) => text && folded(name, textBox(text, "boxed code", { name }));
  return make("section", { class: "panel" }, part("Metadata", trial.metadata), part("Request", trial.request));
}
