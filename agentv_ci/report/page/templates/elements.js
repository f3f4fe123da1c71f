"use strict";

// Elements of a page, made without markup: whatever a text says, it stays a text.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `given` has its attributes, and `on` its listeners. Children are elements, texts or nothing. */
function make(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

/** Make an element of a drawing. */
function draw(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

/** The value of a block of data; undefined where there is none. */
function dataOf(name) {
  const block = document.getElementById(name);
  return block === null ? undefined : JSON.parse(block.textContent);
}

/** The characters of a text that was embedded, whether it was cut or not. */
function charactersOf(text) {
  return typeof text === "object" && text !== null ? text.text : text || "";
}

// Terminal colours; then what is invisible or turns the direction of what follows.
const COLOURS = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A text as nodes in which nothing is hidden: controls are named, so that they can be seen and do nothing. */
function shown(text = "") {
  const plain = text.replace(COLOURS, "").replace(/\r\n/g, "\n");
  const nodes = [];
  let from = 0;
  for (const found of plain.matchAll(CONTROLS)) {
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(plain.slice(from, found.index), make("span", { class: "control" }, `U+${code}`));
    from = found.index + 1;
  }
  nodes.push(plain.slice(from));
  return nodes;
}

/** The same in one line, as plain text. */
function inline(text = "") {
  return text.replace(COLOURS, "").replace(CONTROLS, "\ufffd").replace(/\s+/g, " ");
}

const FOLD_LINES = 24;
const FOLD_CHARACTERS = 2400;

/** A box with a text, folded when it is long. */
function textBox(text, kind = "boxed", nodes = null) {
  const characters = charactersOf(text);
  const box = make("div", { class: `text ${kind}`, dir: "auto" }, nodes === null ? shown(characters) : nodes);
  const parts = [box];
  if (characters.length > FOLD_CHARACTERS || characters.split("\n", FOLD_LINES + 1).length > FOLD_LINES) {
    box.classList.add("folded");
    box.tabIndex = 0;
    const button = make("button", { type: "button", class: "fold-button", "aria-expanded": "false" }, "Show all");
    button.addEventListener("click", () => {
      const isFolded = box.classList.toggle("folded");
      button.textContent = isFolded ? "Show all" : "Show less";
      button.setAttribute("aria-expanded", String(!isFolded));
    });
    parts.push(button);
  }
  if (typeof text === "object" && text !== null) {
    const kept = `Cut here: the first ${count(text.text.length)} of ${count(text.length)} characters.`;
    parts.push(make("p", { class: "warning" }, kept));
  }
  return make("div", {}, parts);
}

/** Something that is there for those who ask. */
function folded(title, ...children) {
  return make("details", {}, make("summary", {}, title), children);
}

/** A button that copies a text. */
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
    const area = make("textarea", { class: "quiet" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

/** A verdict as a badge: a word and a sign, besides its colour. */
function badge(verdict, extra = "") {
  return make("span", { class: `verdict ${verdict} ${extra}` }, verdict);
}
