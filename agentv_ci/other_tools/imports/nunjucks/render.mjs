// Fill in templates of promptfoo: reads a JSON object {text, vars, env} a line, and prints a JSON string, or null if it cannot.
// Templates are code of others: they run in a context that has nothing of Node, cannot reach constructors, and end after a second.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createContext, runInContext } from 'node:vm';

const SECOND_MS = 1000;
const LONGEST = 1_000_000;
const source = readFileSync(new URL('nunjucks.min.js', import.meta.url), 'utf8');
const context = createContext(Object.create(null));
runInContext('globalThis.window = globalThis; globalThis.self = globalThis;', context);
runInContext(source, context);
runInContext(
  `{
    const { nunjucks } = globalThis;
    const lookup = nunjucks.runtime.memberLookup;
    nunjucks.runtime.memberLookup = (object, name) => {
      if (['constructor', '__proto__', 'prototype'].includes(String(name))) throw new Error('not a variable');
      return lookup(object, name);
    };
    globalThis.filled = (given) => {
      const { text, vars, env } = JSON.parse(given);
      const templates = new nunjucks.Environment([], { autoescape: false });
      templates.addGlobal('env', env);
      templates.addFilter('load', JSON.parse);
      return JSON.stringify(templates.renderString(text, vars));
    };
  }`,
  context,
);

for await (const line of createInterface({ input: process.stdin })) {
  let written = 'null';
  try {
    context.given = line;
    written = String(runInContext('filled(given)', context, { timeout: SECOND_MS }));
  } catch {
    // A template that Nunjucks cannot fill in.
  }
  process.stdout.write(`${written.length > LONGEST ? 'null' : written}\n`);
}
