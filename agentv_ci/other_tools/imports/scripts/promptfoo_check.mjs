// Do a check of promptfoo that agentv-ci has no evaluator for, or one after a transformation of the answer.
// Settings: check {type, value, threshold, file, function}, transforms, vars, graded (score as it is, not pass or fail),
// negated (the evaluator negates the score, but a function that throws has failed).
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const given = JSON.parse(readFileSync(0, 'utf8'));
const { check, vars = {}, transforms = [], graded = false, negated = false } = given.config;
const context = { vars, prompt: given.question, test: { vars, assert: [check] }, config: check.config };

const called = async (file, name) => {
  const module = await import(pathToFileURL(resolve(file)));
  const exported = module.default ?? module;
  const found = name ? (module[name] ?? exported[name]) : exported;
  return typeof found === 'function' ? found : (found?.default ?? found?.getAssert);
};
const evaluated = async (code, output) => {
  const isBody = /(^|[\n;{])\s*(return|const|let|if)\b/.test(code);
  const made = new Function('output', 'context', 'vars', 'process', isBody ? code : `return (${code});`);
  return made(output, context, vars, process);
};
const judged = async (output) => {
  const run = check.file ? await called(check.file, check.function) : (...given) => evaluated(check.value, given[0]);
  if (typeof run !== 'function') throw new Error(`${check.file} has no function ${check.function ?? ''}`);
  try {
    const result = await run(output, context);
    if (!['boolean', 'number', 'object'].includes(typeof result) || result === null) throw new Error(`it returned ${result}`);
    return result;
  } catch (error) {
    return { pass: negated, score: negated ? 1 : 0, reason: `the function threw: ${error?.message ?? error}` };
  }
};
const lower = (text) => String(text).toLowerCase();
const values = () => (Array.isArray(check.value) ? check.value : String(check.value).split(',').map((each) => each.trim()));
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
const jsonIn = (text) => {
  for (let start = 0; start < text.length; start += 1) {
    if (text[start] !== '{' && text[start] !== '[') continue;
    for (let end = text.length; end > start; end -= 1) {
      if ((text[end - 1] === '}' || text[end - 1] === ']') && parsed(text.slice(start, end)) !== undefined) return true;
    }
  }
  return false;
};
const isMarkup = (text) => {
  const open = [];
  for (const [, close, name, self] of text.matchAll(/<(\/?)([A-Za-z][\w:.-]*)[^<>]*?(\/?)>/g)) {
    if (close) {
      if (open.pop() !== name) return false;
    } else if (!self) open.push(name);
  }
  return open.length === 0;
};
const distance = (one, other) => {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[other.length];
};
const words = (text) => text.trim().split(/\s+/).filter(Boolean).length;
const checks = {
  javascript: judged,
  equals: (output) => (typeof check.value === 'object' ? JSON.stringify(parsed(output) ?? output) === JSON.stringify(check.value) : String(output) === String(check.value)),
  contains: (output) => String(output).includes(check.value),
  icontains: (output) => lower(output).includes(lower(check.value)),
  'contains-any': (output) => values().some((each) => String(output).includes(each)),
  'contains-all': (output) => values().every((each) => String(output).includes(each)),
  'icontains-any': (output) => values().some((each) => lower(output).includes(lower(each))),
  'icontains-all': (output) => values().every((each) => lower(output).includes(lower(each))),
  'starts-with': (output) => String(output).startsWith(check.value),
  regex: (output) => new RegExp(check.value).test(String(output)),
  'is-json': (output) => typeof output === 'object' || parsed(output) !== undefined,
  'contains-json': (output) => typeof output === 'object' || jsonIn(String(output)),
  'is-xml': (output) => /^\s*<[\s\S]+>\s*$/.test(output) && isMarkup(output),
  'contains-xml': (output) => /<([A-Za-z][\w:.-]*)[^<>]*>[\s\S]*<\/\1>|<[A-Za-z][^<>]*\/>/.test(output),
  'is-html': (output) => /^\s*<(!doctype|[A-Za-z])[\s\S]*>\s*$/i.test(output),
  'contains-html': (output) => /<([A-Za-z][\w-]*)[^<>]*>[\s\S]*<\/\1>|<(br|img|hr|input)\b[^<>]*>/i.test(output),
  'is-refusal': (output) => /\b(I can(no|')t|I cannot|I'm unable|I am unable|I won't|I'm sorry|as an AI)\b/i.test(output) || !String(output).trim(),
  levenshtein: (output) => distance(String(output), String(check.value)) <= (check.threshold ?? 5),
  'word-count': (output) => {
    const count = words(String(output));
    const { min = 0, max = Infinity } = typeof check.value === 'object' ? check.value : { min: +check.value, max: +check.value };
    return min <= count && count <= max;
  },
};

let output = given.candidate_answer;
for (const transform of transforms) {
  output = transform.file ? await (await called(transform.file, transform.function))(output, context) : await evaluated(transform.code, output);
}
const result = await checks[check.type](output);
let pass = result;
let reasoning = `${check.type}: ${JSON.stringify(result)}`;
if (typeof result === 'number') pass = check.threshold === undefined ? result > 0 : result >= check.threshold;
if (result !== null && typeof result === 'object') {
  pass = result.pass ?? (check.threshold === undefined ? result.score > 0 : result.score >= check.threshold);
  reasoning = result.reason ?? reasoning;
}
const own = typeof result === 'number' ? result : result?.score;
console.log(JSON.stringify({ score: graded && typeof own === 'number' ? own : pass ? 1 : 0, reasoning: String(reasoning) }));
