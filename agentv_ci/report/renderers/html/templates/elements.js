"use strict";

// Build elements without markup, so that text stays text.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `given` has its attributes and, in `on`, its listeners. Children are elements, texts or empty. */
function make(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

/** Make an SVG element. */
function draw(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  // Appended at once, before the text direction is resolved: a difference may have 100,000 parts.
  const parts = document.createDocumentFragment();
  for (const child of children.flat(Infinity)) if (isSomething(child)) parts.append(child);
  element.append(parts);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  return element;
}

function isSomething(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

/** The value of a block of data; undefined if it does not exist. */
function dataOf(name) {
  const block = document.getElementById(name);
  return block === null ? undefined : JSON.parse(block.textContent);
}

/** Whether only the beginning of a text was embedded. */
function isCut(text) {
  return typeof text === "object" && text !== null;
}

/** The characters of a text that was embedded, whether it was cut or not. */
function charactersOf(text) {
  return isCut(text) ? text.text : text || "";
}

const COLOURS = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;
// Invisible characters and those that change the direction of text; joiners only if they join nothing.
const JOINED = "(?![\\p{Script=Latin}\\p{Script=Greek}\\p{Script=Cyrillic}])[\\p{L}\\p{M}\\p{Extended_Pictographic}\\u{1f3fb}-\\u{1f3ff}]";
const INVISIBLE = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028\\u2029"
  + "\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e01ef}";
const CONTROLS = new RegExp(`[${INVISIBLE}]|(?<!${JOINED})[\\u200c\\u200d]|[\\u200c\\u200d](?!${JOINED})`, "gu");

/** A text without terminal colors, and with one kind of line ends. */
function plain(text) {
  return text.replace(COLOURS, "").replace(/\r\n/g, "\n");
}

/** A text as nodes in which control characters are replaced by their names, so that they are visible and inert. */
function shown(text = "") {
  const content = plain(text);
  const nodes = [];
  let from = 0;
  for (const found of content.matchAll(CONTROLS)) {
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(content.slice(from, found.index), make("span", { class: "control" }, `U+${code}`));
    from = found.index + found[0].length;
  }
  nodes.push(content.slice(from));
  return nodes;
}

/** A text on one line, as plain text. */
function inline(text = "") {
  return text.replace(COLOURS, "").replace(/[ \t\r\n]+/g, " ").replace(CONTROLS, "\ufffd");
}

/** A path or an id that a line may break after a separator, rather than inside a word. */
function breakable(text) {
  return text.split(/(?<=[/._:-])(?=\w)/).flatMap((part, index) => (index > 0 ? [make("wbr"), part] : [part]));
}

/** The name of a case on one line; an invisible one is shown as JSON. */
function visibleName(id) {
  const name = inline(id);
  return name.trim() === "" ? JSON.stringify(id) : name;
}

const FOLD_LINES = 24;
const FOLD_CHARACTERS = 2400;

/** A box with a text, folded if it is long; `name` is then its label. */
function textBox(text, kind = "", { name = "Text", nodes = null } = {}) {
  const characters = charactersOf(text);
  const box = make("div", { class: `text ${kind}`.trim(), dir: "auto" }, nodes === null ? shown(characters) : nodes);
  const parts = [box];
  if (characters.length > FOLD_CHARACTERS || characters.split("\n", FOLD_LINES + 1).length > FOLD_LINES) {
    parts.push(foldButton(box, name));
  }
  parts.push(cutNote(text));
  return make("div", {}, parts);
}

/** Fold a box, and make the button that unfolds it. A folded box can take the focus, so that keys scroll it. */
function foldButton(box, name) {
  const button = make("button", { type: "button", class: "fold-button" });
  const fold = (isFolded) => {
    box.classList.toggle("folded", isFolded);
    for (const [key, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": name })) {
      if (isFolded) box.setAttribute(key, value);
      else box.removeAttribute(key);
    }
    button.textContent = isFolded ? "Show all" : "Show less";
    button.setAttribute("aria-expanded", String(!isFolded));
  };
  button.addEventListener("click", () => fold(!box.classList.contains("folded")));
  fold(true);
  return button;
}

/** A note on a text that was cut; null if it was not. */
function cutNote(text, what = "Cut here") {
  if (!isCut(text)) return null;
  // Counted in code points, not in UTF-16 units.
  const kept = Array.from(text.text).length;
  return make("p", { class: "warning" }, `${what}: the first ${count(kept)} of ${count(text.length)} characters.`);
}

/** A collapsed section. */
function folded(title, ...children) {
  return make("details", {}, make("summary", {}, title), children);
}

/** A button that copies a text to the clipboard. */
function copyButton(text, name) {
  const button = make("button", { type: "button" }, name);
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text())) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = name; }, 1500);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const area = make("textarea", { class: "quiet" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    before?.focus({ preventScroll: true });
    return isDone;
  }
}

/** A verdict as a badge that does not rely on color alone. */
function badge(verdict, size = "") {
  return make("span", { class: `verdict ${verdict.replaceAll(" ", "-")} ${size}`.trim() }, verdict);
}

function panelOf(title, ...children) {
  return make("section", { class: "panel" }, make("h2", {}, title), children);
}

/** Names with their values, without unknown ones. */
function list(pairs) {
  const known = pairs.filter(([, value]) => isSomething(value));
  return make("dl", { class: "numbers" }, known.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}
