"use strict";

// Figures as people read them; the same as in the part of the page that needs no script.

function count(number) {
  return number.toLocaleString("en");
}

function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function score(value) {
  return value === undefined || value === null ? "–" : value.toFixed(3);
}

function digits(value, number) {
  return String(Number(value.toPrecision(number)));
}

function money(dollars) {
  if (dollars === undefined || dollars === null) return "–";
  if (dollars === 0 || dollars >= 0.1) return `$${dollars.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return dollars >= 0.0001 ? `$${digits(dollars, 2)}` : `$${dollars.toExponential(0)}`;
}

function duration(milliseconds) {
  if (milliseconds === undefined || milliseconds === null) return "–";
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${digits(milliseconds, 3)} ms`;
  if (seconds < 60) return `${digits(seconds, 3)} s`;
  return seconds < 3600 ? `${digits(seconds / 60, 3)} min` : `${digits(seconds / 3600, 3)} h`;
}

function percent(share) {
  return `${Math.round(share * 100)}%`;
}

function signedPercent(share) {
  return `${share < 0 ? "−" : "+"}${Math.round(Math.abs(share) * 100)}%`;
}

/** A bar from 0 to 1, as drawn beside a score. */
function scoreBar(value, verdict) {
  return draw("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true", class: verdict },
    draw("rect", { width: Math.round(value * 100), height: 1 }));
}
