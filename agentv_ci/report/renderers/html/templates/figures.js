"use strict";

// Format figures for people, by the same rules as `numbers.py`; one table tests both.

function count(number) {
  return fixed(number, 0);
}

function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A number with so many decimal places. */
function fixed(value, places) {
  const [whole, rest] = value.toFixed(places).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

/** A number with so many significant digits, without trailing zeros. */
function digits(value, number) {
  const [whole, rest] = String(Number(value.toPrecision(number))).split(".");
  return rest === undefined ? fixed(Number(whole), 0) : `${whole}.${rest}`;
}

function score(value) {
  return value === undefined || value === null ? "–" : fixed(value, 3);
}

function money(dollars) {
  if (dollars === undefined || dollars === null) return "–";
  if (dollars > 0 && dollars < 0.0001) return "<$0.0001";
  return dollars === 0 || dollars >= 0.0995 ? `$${fixed(dollars, 2)}` : `$${digits(dollars, 2)}`;
}

const UNITS = [["ms", 1, 1000], ["s", 1000, 60], ["min", 60_000, 60], ["h", 3_600_000, Infinity]];

function duration(milliseconds) {
  if (milliseconds === undefined || milliseconds === null) return "–";
  // Rounded first: 59.96 s are 1 min.
  const [name, unit] = UNITS.find(([, each, limit]) => Number((milliseconds / each).toPrecision(3)) < limit) || UNITS.at(-1);
  return `${digits(unit === 1 ? milliseconds : Math.max(milliseconds / unit, 1), 3)} ${name}`;
}

function percent(share) {
  return `${fixed(share * 100, 0)}%`;
}

function signedPercent(share) {
  return `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
}

/** A bar from 0 to 1, shown beside a score. */
function scoreBar(value, verdict) {
  return draw("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true", class: verdict },
    draw("rect", { width: Math.round(value * 100), height: 1 }));
}
