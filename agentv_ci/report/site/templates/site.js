"use strict";

// Routing between the overview and the pages of cases: the fragment of the address selects the view.

function start() {
  const [runs, trends, cases, intervals] = ["runs", "trends", "cases", "intervals"].map(dataOf);
  const page = { overview: document.getElementById("overview"), case: document.getElementById("case") };
  const title = document.title;
  const nameOf = (id, suite, target) => JSON.stringify([id, suite, target]);
  const byName = new Map(cases.map((each) => [nameOf(each.id, each.suite, each.target), each]));
  const addressOf = (each) => `#${new URLSearchParams({ case: each.id, suite: each.suite, target: each.target })}`;
  let scroll = 0;

  function route() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const isCase = parameters.has("case");
    if (isCase && !page.overview.hidden) scroll = window.scrollY;
    const isBack = !isCase && page.overview.hidden;
    page.overview.hidden = isCase;
    page.case.hidden = !isCase;
    if (!isCase) {
      document.title = title;
      if (isBack) window.scrollTo(0, scroll);
      return;
    }
    const each = byName.get(nameOf(parameters.get("case"), parameters.get("suite"), parameters.get("target")));
    document.title = inline(parameters.get("case"));
    page.case.replaceChildren(...(each === undefined ? unknownCase(parameters.get("case")) : casePage(runs, each, intervals, "#")));
    page.case.querySelector("h1").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  document.getElementById("tools").append(themeButton());
  document.getElementById("plots").append(...trendsOf(runs, trends));
  document.getElementById("table").replaceWith(casesOf(runs, cases, addressOf));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (page.case.hidden ? document.getElementById("cases-title") : page.case.querySelector("h1")).focus();
  });
  addEventListener("hashchange", route);
  route();
}

const GROUPS_AT_ONCE = 8;

/** The plots of all cases, and the pass rates of targets and suites: at first the lowest of them. */
function trendsOf(runs, [all, ...groups]) {
  const newest = ({ rate }) => rate.findLast((value) => value !== null) ?? 0;
  const plots = groups.toSorted((one, other) => newest(one) - newest(other))
    .map(({ name, rate, low, high }) => () => chartsOf(runs, name, { rate, low, high })[0]);
  const first = plots.slice(0, GROUPS_AT_ONCE).map((plot) => plot());
  const others = plots.slice(GROUPS_AT_ONCE);
  const more = make("div", { class: "rest" }, make("button", { type: "button", on: { click: () => {
    more.replaceWith(...others.map((plot) => plot()).filter(Boolean));
  } } }, `Show ${counted(others.length, "more plot")}`));
  return [...chartsOf(runs, "", all), ...first, others.length > 0 && more].filter(Boolean);
}

function unknownCase(name) {
  return [make("div", { class: "empty" },
    make("h1", { tabindex: "-1" }, "No such case"),
    make("p", {}, "Case ", make("b", {}, inline(name)), " is not in this ledger."),
    make("a", { class: "button", href: "#", id: "back" }, "← All cases"))];
}

start();
