"use strict";

// Plots of a figure over runs.

const FRAME = { width: 360, height: 132, left: 44, right: 354, top: 8, bottom: 112 };
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MOST_MONTHS = 7;

/** The day of a run, such as 2026-11-24. */
function dayOf(run) {
  return run[0].slice(0, 10);
}

/** The first run of each month as [number, label], thinned to a few. */
function monthsOf(runs, most = MOST_MONTHS) {
  const starts = [];
  runs.forEach((run, number) => {
    if (number === 0 || dayOf(run).slice(0, 7) !== dayOf(runs[number - 1]).slice(0, 7)) {
      starts.push([number, MONTHS[Number(run[0].slice(5, 7)) - 1]]);
    }
  });
  // The label of a month that the ledger only ends would touch the next one.
  if (starts.length > 1 && starts[1][0] < runs.length / (2 * most)) starts.shift();
  const every = Math.ceil(starts.length / most);
  return starts.filter((_, index) => index % every === 0);
}

/** A few round values from 0 to a maximum. */
function ticksUpTo(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [power / 5, power / 2, power, power * 2].find((each) => most / each <= 4);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
}

/**
 * A plot with its title. `values`, and `low` and `high` if there is an interval, have a number or null for each run;
 * `form` makes a value a text; without `most` the axis ends at the largest value; `edits` are runs to mark.
 */
function chartOf(runs, title, { values, low = null, high = null, form, most = null, edits = [] }) {
  const known = values.flatMap((value, number) => (value === null || value === undefined ? [] : [number]));
  if (known.length === 0) return null;
  const top = most ?? (Math.max(...known.map((number) => values[number])) * 1.05 || 1);
  const x = (number) => FRAME.left + (FRAME.right - FRAME.left) * (runs.length > 1 ? number / (runs.length - 1) : 0.5);
  const y = (value) => FRAME.bottom - (FRAME.bottom - FRAME.top) * Math.min(value / top, 1);
  const at = (number, value) => `${x(number).toFixed(1)} ${y(value).toFixed(1)}`;
  const reading = make("p", { class: "reading" });
  const guide = draw("path", { class: "guide", hidden: true });
  const say = (number) => {
    const interval = low !== null && low[number] !== null ? ` (${form(low[number])} to ${form(high[number])})` : "";
    const commit = runs[number][1] === null ? "" : `, ${inline(runs[number][1].slice(0, 7))}`;
    reading.textContent = `${dayOf(runs[number])}: ${form(values[number])}${interval}${commit}`;
  };
  let place = known.length - 1;
  const point = (wanted) => {
    place = wanted;
    guide.setAttribute("d", `M${x(known[place])} ${FRAME.top}V${FRAME.bottom}`);
    guide.removeAttribute("hidden");
    say(known[place]);
  };
  const leave = () => {
    reading.removeAttribute("aria-live");
    guide.setAttribute("hidden", "");
    place = known.length - 1;
    say(known[place]);
  };
  const plot = draw("svg", { viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "img", tabindex: "0", "aria-label": summaryOf(title, runs, values, known, form) },
    ticksUpTo(top).map((value) => [
      draw("path", { class: "grid", d: `M${FRAME.left} ${y(value)}H${FRAME.right}` }),
      draw("text", { x: FRAME.left - 5, y: y(value) + 3.5, "text-anchor": "end" }, form(value)),
    ]),
    monthsOf(runs).map(([number, label]) => draw("text", { x: x(number), y: FRAME.height - 4, "text-anchor": number === 0 ? "start" : "middle" }, label)),
    edits.map((number) => draw("path", { class: "edit", d: `M${x(number)} ${FRAME.top}V${FRAME.bottom}` }, draw("title", {}, `${dayOf(runs[number])}: the case changed`))),
    low === null ? null : draw("path", { class: "band", d: bandOf(low, high, at) }),
    draw("path", { class: "curve", d: stretchesOf(values).map((part) => `M${part.map((number) => at(number, values[number])).join("L")}`).join("") }),
    draw("path", { class: "dots", d: stretchesOf(values).filter((part) => part.length === 1).map(([number]) => `M${at(number, values[number])}h0`).join("") }),
    guide);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const wanted = (event.clientX - box.left) / box.width * FRAME.width;
    const nearest = known.reduce((best, number) => (Math.abs(x(number) - wanted) < Math.abs(x(best) - wanted) ? number : best));
    point(known.indexOf(nearest));
  });
  plot.addEventListener("focus", () => {
    // Announced only while the plot has the keyboard.
    reading.setAttribute("aria-live", "polite");
    point(known.length - 1);
  });
  plot.addEventListener("keydown", (event) => {
    const wanted = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: known.length - 1 }[event.key];
    if (wanted === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    point(Math.min(Math.max(wanted, 0), known.length - 1));
  });
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("blur", leave);
  leave();
  return make("section", { class: "panel chart" }, make("h2", {}, breakable(inline(title))), plot, reading);
}

/** Runs without a gap between them. */
function stretchesOf(values) {
  const parts = [];
  values.forEach((value, number) => {
    if (value === null || value === undefined) return;
    if (number > 0 && parts.at(-1)?.at(-1) === number - 1) parts.at(-1).push(number);
    else parts.push([number]);
  });
  return parts;
}

function bandOf(low, high, at) {
  return stretchesOf(low).map((part) => {
    const above = part.map((number) => at(number, high[number]));
    const below = part.toReversed().map((number) => at(number, low[number]));
    return `M${[...above, ...below].join("L")}Z`;
  }).join("");
}

function summaryOf(title, runs, values, known, form) {
  const [first, last] = [known[0], known.at(-1)];
  const worst = known.reduce((best, number) => (values[number] < values[best] ? number : best));
  const highest = known.reduce((best, number) => (values[number] > values[best] ? number : best));
  return `${inline(title)} in ${counted(known.length, "run")}: ${form(values[first])} on ${dayOf(runs[first])}, `
    + `${form(values[last])} on ${dayOf(runs[last])}; lowest ${form(values[worst])} on ${dayOf(runs[worst])}, `
    + `highest ${form(values[highest])} on ${dayOf(runs[highest])}`;
}

/** The plots of a group or a case; those without any value are null. */
function chartsOf(runs, name, { rate = null, low = null, high = null, score: scores = null, cost = null, ms = null, edits = [] }) {
  const titled = (what) => (name === "" ? what : `${name}: ${what.toLowerCase()}`);
  return [
    rate && chartOf(runs, titled("Pass rate"), { values: rate, low, high, form: percent, most: 1, edits }),
    scores && chartOf(runs, titled("Score"), { values: scores, form: (value) => fixed(value, 2), most: 1, edits }),
    cost && chartOf(runs, titled("Cost"), { values: cost, form: money, edits }),
    ms && chartOf(runs, titled("Time"), { values: ms, form: duration, edits }),
  ];
}
