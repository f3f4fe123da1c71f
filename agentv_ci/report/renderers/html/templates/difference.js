"use strict";

// What two texts have in common: lines first, then words within the lines that differ.

const MAX_CELLS = 4_000_000;
const TOO_DIFFERENT = 0.25;

/**
 * Compare two texts. `parts` are [kind, text] with kind "same", "gone" or "come". `form` says how they are best shown:
 * "same", "words", "lines" (too long for words), or "apart", side by side, when little is common or both are too long.
 */
function compareTexts(before, after) {
  if (before === after) return { form: "same", parts: [["same", before]] };
  const lines = commonParts(before.split(/(?<=\n)/), after.split(/(?<=\n)/));
  if (lines === null) return { form: "apart", parts: [] };
  const parts = [];
  let form = "words";
  for (const hunk of hunks(lines)) {
    const words = hunk.gone && hunk.come ? commonParts(wordsOf(hunk.gone), wordsOf(hunk.come)) : null;
    if (words !== null) for (const part of words) parts.push(part);
    else {
      if (hunk.same) parts.push(["same", hunk.same]);
      if (hunk.gone) parts.push(["gone", hunk.gone]);
      if (hunk.come) parts.push(["come", hunk.come]);
      if (hunk.gone && hunk.come) form = "lines";
    }
  }
  const common = parts.reduce((sum, [kind, text]) => sum + (kind === "same" ? text.replace(/\s+/g, "").length : 0), 0);
  const longest = Math.max(before.replace(/\s+/g, "").length, after.replace(/\s+/g, "").length);
  return longest > 0 && common / longest < TOO_DIFFERENT ? { form: "apart", parts } : { form, parts: merged(parts) };
}

function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{M}\p{N}_\u200c\u200d]+|[^\s\p{L}\p{M}\p{N}_\u200c\u200d]/gu) || [];
}

/** Runs of lines that are the same, or that stand against each other. */
function* hunks(lines) {
  let hunk = { gone: "", come: "" };
  for (const [kind, text] of lines) {
    if (kind !== "same") { hunk[kind] += text; continue; }
    if (hunk.gone || hunk.come) yield hunk;
    yield { same: text };
    hunk = { gone: "", come: "" };
  }
  if (hunk.gone || hunk.come) yield hunk;
}

/** The longest common subsequence of two lists of texts, as parts; null when that would take too long. */
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
      parts.push(["gone", one[i]]);
      i += 1;
    } else {
      parts.push(["come", other[j]]);
      j += 1;
    }
  }
  return parts;
}

/** The same parts with neighbours of one kind joined, what has gone before what has come. */
function merged(parts) {
  const joined = [];
  let gone = "";
  let come = "";
  const flush = () => {
    if (gone) joined.push(["gone", gone]);
    if (come) joined.push(["come", come]);
    gone = "";
    come = "";
  };
  for (const [kind, text] of parts) {
    if (kind === "gone") gone += text;
    else if (kind === "come") come += text;
    else if (joined.length > 0 && joined.at(-1)[0] === "same" && !gone && !come) joined.at(-1)[1] += text;
    else { flush(); joined.push(["same", text]); }
  }
  flush();
  return joined;
}
