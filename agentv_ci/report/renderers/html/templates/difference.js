"use strict";

// Compare two texts: as data if both are JSON, else by lines, and by words within the lines that differ.

const MAX_CELLS = 4_000_000;
const TOO_DIFFERENT = 0.4;

/** Compare an answer with the expected one; two of JSON by their data, as the forms "equal" and "data". */
function compareAnswers(before, after) {
  return (before !== after && compareData(before, after)) || compareTexts(before, after);
}

function compareData(before, after) {
  try {
    const [one, other] = [dataIn(before), dataIn(after)];
    const lines = dataLines(one, other, "", "", "");
    const parts = lines.flatMap(([kind, indent, text]) => [["same", indent], [kind, text], ["same", "\n"]]);
    return { form: lines.some(([kind]) => kind !== "same") ? "data" : "equal", parts: merged(parts) };
  } catch {
    return null;
  }
}

/** The object or list in a text, with or without a fence; throws for other texts, and for numbers that would be rounded. */
function dataIn(text) {
  const value = JSON.parse(text.replace(/^\s*```\w*\n([^]*?)\n?```\s*$/, "$1"));
  if (!isContainer(value) || /\d{16}/.test(text)) throw new TypeError();
  return value;
}

function isContainer(value) {
  return typeof value === "object" && value !== null;
}

/** Two values as lines, [kind, indent, text]: objects are compared key by key, and lists item by item. */
function dataLines(one, other, indent, name, comma) {
  const isList = Array.isArray(one);
  if (!isContainer(one) || !isContainer(other) || isList !== Array.isArray(other)) {
    if (one === other) return linesOf("same", one, indent, name, comma);
    return [...linesOf("removed", one, indent, name, comma), ...linesOf("added", other, indent, name, comma)];
  }
  const pairs = isList ? pairedItems(one, other) : pairedKeys(one, other);
  const inner = pairs.flatMap(({ key, sides }, index) => {
    const label = key === undefined ? "" : `${JSON.stringify(key)}: `;
    const end = index < pairs.length - 1 ? "," : "";
    if (sides.length === 2) return dataLines(sides[0].value, sides[1].value, `${indent}  `, label, end);
    return linesOf(sides[0].kind, sides[0].value, `${indent}  `, label, end);
  });
  const [open, close] = isList ? "[]" : "{}";
  return [["same", indent, name + open], ...inner, ["same", indent, close + comma]];
}

function pairedKeys(one, other) {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].map((key) => ({ key, sides: sidesOf(
    Object.hasOwn(one, key) && { kind: "removed", value: one[key] }, Object.hasOwn(other, key) && { kind: "added", value: other[key] },
  ) }));
}

/** Equal items are paired first; between them, the n-th with the n-th. */
function pairedItems(one, other) {
  const pairs = [];
  let [removed, added] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) pairs.push({ sides: sidesOf(removed[at], added[at]) });
    [removed, added] = [[], []];
  };
  if ((one.length + 1) * (other.length + 1) > MAX_CELLS) throw new RangeError();
  let [i, j] = [0, 0];
  for (const [kind] of between(one.map(canonical), other.map(canonical))) {
    if (kind === "same") flush();
    if (kind !== "added") removed.push({ kind: "removed", value: one[i++] });
    if (kind !== "removed") added.push({ kind: "added", value: other[j++] });
    if (kind === "same") flush();
  }
  flush();
  return pairs;
}

function sidesOf(...sides) {
  return sides.filter(Boolean);
}

/** JSON with sorted keys. */
function canonical(value) {
  const sorted = (_, each) => (isContainer(each) && !Array.isArray(each) ? Object.fromEntries(Object.entries(each).sort()) : each);
  return JSON.stringify(value, sorted);
}

function linesOf(kind, value, indent, name, comma) {
  return `${name}${JSON.stringify(value, null, 2)}${comma}`.split("\n").map((line) => {
    const text = line.trimStart();
    return [kind, indent + line.slice(0, line.length - text.length), text];
  });
}

/**
 * Compare two texts. `parts` are [kind, text] with kind "same", "removed" or "added". `form` is how to show them: "same",
 * "words", "lines" (too long for words), or "apart", side by side, if they have little in common or are too long.
 */
function compareTexts(before, after) {
  if (before === after) return { form: "same", parts: [["same", before]] };
  const lines = commonParts(before.split(/(?<=\n)/), after.split(/(?<=\n)/));
  if (lines === null) return { form: "apart", parts: [] };
  const parts = [];
  let form = "words";
  for (const hunk of hunks(lines)) {
    const words = hunk.removed && hunk.added ? commonParts(wordsOf(hunk.removed), wordsOf(hunk.added)) : null;
    if (words !== null) for (const part of words) parts.push(part);
    else {
      if (hunk.same) parts.push(["same", hunk.same]);
      if (hunk.removed) parts.push(["removed", hunk.removed]);
      if (hunk.added) parts.push(["added", hunk.added]);
      if (hunk.removed && hunk.added) form = "lines";
    }
  }
  const common = parts.reduce((sum, [kind, text]) => sum + (kind === "same" ? text.replace(/\s+/g, "").length : 0), 0);
  const longest = Math.max(before.replace(/\s+/g, "").length, after.replace(/\s+/g, "").length);
  return longest > 0 && common / longest < TOO_DIFFERENT ? { form: "apart", parts } : { form, parts: merged(parts) };
}

function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{M}\p{N}_\u200c\u200d]+|[^\s\p{L}\p{M}\p{N}_\u200c\u200d]/gu) || [];
}

/** Runs of equal lines, and of lines that replace each other. */
function* hunks(lines) {
  let hunk = { removed: "", added: "" };
  for (const [kind, text] of lines) {
    if (kind !== "same") { hunk[kind] += text; continue; }
    if (hunk.removed || hunk.added) yield hunk;
    yield { same: text };
    hunk = { removed: "", added: "" };
  }
  if (hunk.removed || hunk.added) yield hunk;
}

/** The longest common subsequence of two lists of texts, as parts; null if it would take too long. */
function commonParts(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const one = before.slice(start, before.length - end);
  const other = after.slice(start, after.length - end);
  if ((one.length + 1) * (other.length + 1) > MAX_CELLS) return null;
  const same = (texts) => texts.map((text) => ["same", text]);
  return merged([same(before.slice(0, start)), between(one, other), same(before.slice(before.length - end))].flat());
}

function between(one, other) {
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = one[i] === other[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const parts = [];
  let i = 0;
  let j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      parts.push(["same", one[i]]);
      i += 1;
      j += 1;
    } else if (j >= other.length || (i < one.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      parts.push(["removed", one[i]]);
      i += 1;
    } else {
      parts.push(["added", other[j]]);
      j += 1;
    }
  }
  return parts;
}

/** Join neighbouring parts of one kind, removed text before added text. */
function merged(parts) {
  const joined = [];
  let removed = "";
  let added = "";
  const flush = () => {
    if (removed) joined.push(["removed", removed]);
    if (added) joined.push(["added", added]);
    removed = "";
    added = "";
  };
  for (const [kind, text] of parts) {
    if (kind === "removed") removed += text;
    else if (kind === "added") added += text;
    else if (joined.length > 0 && joined.at(-1)[0] === "same" && !removed && !added) joined.at(-1)[1] += text;
    else { flush(); joined.push(["same", text]); }
  }
  flush();
  return joined;
}
