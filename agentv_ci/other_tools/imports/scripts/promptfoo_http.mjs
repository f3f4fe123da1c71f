// Ask an HTTP provider of promptfoo: promptfoo_http.mjs CONFIG PROMPT_FILE
// In its templates `{{ env.NAME }}` is a variable of the environment, and any other name the prompt.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [file, promptFile] = process.argv.slice(2);
const config = JSON.parse(readFileSync(file, 'utf8'));
const prompt = readFileSync(promptFile, 'utf8');
const value = (name) => (name.startsWith('env.') ? (process.env[name.slice(4)] ?? '') : prompt);
const filled = (text, written = (each) => each) =>
  text.replace(/\{\{\s*([\w.]+)\s*\}\}/g, (_, name) => written(value(name)));
const everywhere = (given) => {
  if (typeof given === 'string') return filled(given);
  if (Array.isArray(given)) return given.map(everywhere);
  if (given === null || typeof given !== 'object') return given;
  return Object.fromEntries(Object.entries(given).map(([key, each]) => [filled(key), everywhere(each)]));
};
const inJson = (text) => JSON.stringify(text).slice(1, -1);
const answered = async (code, json, text) => {
  if (code.startsWith('file://')) {
    const module = await import(pathToFileURL(resolve(code.slice(7))));
    return (module.default ?? module)(json, text, {});
  }
  const isBody = /(^|[\n;{])\s*(return|const|let|if|try)\b/.test(code) && !/^\s*(\(|\w+\s*=>|function)/.test(code);
  const made = new Function('json', 'text', 'context', isBody ? code : `return (${code});`)(json, text, {});
  return typeof made === 'function' ? made(json, text, {}) : made;
};

const url = new URL(filled(config.url));
for (const [key, each] of Object.entries(everywhere(config.queryParams ?? {}))) url.searchParams.set(key, each);
const { body, method = body === undefined ? 'GET' : 'POST' } = config;
const sent = typeof body === 'string' ? filled(body, inJson) : body && JSON.stringify(everywhere(body));
const type = body !== undefined && typeof body !== 'string' ? { 'content-type': 'application/json' } : {};
const response = await fetch(url, { method, headers: { ...type, ...everywhere(config.headers ?? {}) }, body: sent });
const text = await response.text();
if (!response.ok) {
  console.error(`${response.status} ${response.statusText}: ${text.slice(0, 500)}`);
  process.exit(1);
}
let json = null;
try {
  json = JSON.parse(text);
} catch {
  // The answer is a text.
}
const output = config.transformResponse ? await answered(config.transformResponse, json, text) : (json ?? text);
const messages = [output, JSON.stringify(output)].map((content) => ({ role: 'assistant', content }));
process.stdout.write(JSON.stringify(typeof output === 'object' ? { output_messages: messages } : { text: String(output) }));
