"use strict";

// Compare two texts: by lines first, then by words within the lines that differ.

const MAX_CELLS = 4_000_000;
const TOO_DIFFERENT = 0.25;

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
