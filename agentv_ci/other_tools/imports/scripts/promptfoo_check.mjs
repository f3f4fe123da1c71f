// Do a check of promptfoo that agentv-ci has no evaluator for, or one after a transformation of the answer.
// Settings: check {type, value, threshold, config, file, function}, transforms, vars, provider, parsed (the target's answers
// are JSON), graded (score as it is, not pass or fail), negated. With --output, print only the transformed answer as JSON.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const given = JSON.parse(readFileSync(0, 'utf8'));
const { check, vars = {}, transforms = [], provider, graded = false, negated = false } = given.config;
const json = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

// The answer: an object if the provider gave one.
const answered = given.config.parsed ? (json(given.candidate_answer) ?? given.candidate_answer) : given.candidate_answer;
const said = given.output_messages.map((message) => message.content);
const original = said.find((content) => typeof content === 'object' && content !== null) ?? answered;
const asText = (output) => (typeof output === 'string' ? output : JSON.stringify(output));
const context = {
  vars,
  prompt: given.question,
  test: { vars, assert: [check] },
  config: check.config,
  providerResponse: { output: original },
  ...(provider && { provider: { id: () => provider.id, label: provider.label ?? provider.id, config: provider.config } }),
};

class Broken extends Error {}
const need = (holds, message) => {
  if (!holds) throw new Broken(message);
};
const called = async (file, name) => {
  const module = await import(pathToFileURL(resolve(file)));
  const exported = module.default ?? module;
  const run = name ? (module[name] ?? exported[name]) : (exported?.default ?? exported);
  const found = typeof run === 'function' ? run : (exported.getAssert ?? exported.func);
  if (typeof found !== 'function') {
    console.error(`${file} has no function ${name ?? ''}`);
    process.exit(1);
  }
  return found;
};
const python = async (file, name, output) => {
  const { spawnSync } = await import('node:child_process');
  const program = 'import importlib.util,json,sys\ns=importlib.util.spec_from_file_location("m",sys.argv[1])\n'
    + 'm=importlib.util.module_from_spec(s);s.loader.exec_module(m)\na=json.load(sys.stdin)\n'
    + 'print("\\n"+json.dumps(getattr(m,sys.argv[2])(a["output"],a["context"])))';
  const done = spawnSync('python3', ['-c', program, file, name], { input: JSON.stringify({ output, context }), encoding: 'utf8' });
  if (done.status !== 0) throw new Error(done.stderr);
  return JSON.parse(done.stdout.trimEnd().split('\n').at(-1));
};

// Code on one line is an expression, or declarations and an expression; of several lines it is the body of a function.
const lastSemicolon = (code) => {
  let quote = '';
  let last = -1;
  for (let at = 0; at < code.length; at += 1) {
    if (code[at] === '\\') at += 1;
    else if (quote) quote = code[at] === quote ? '' : quote;
    else if ('\'"`'.includes(code[at])) quote = code[at];
    else if (code[at] === ';') last = at;
  }
  return last;
};
const body = (written) => {
  const code = written.trimEnd();
  if (code.includes('\n')) return code;
  const line = code.trim().replace(/;+\s*$/, '');
  if (!/^(const|let|var)\s/.test(line)) return `return ${line}`;
  const at = lastSemicolon(line);
  const expression = line.slice(at + 1).trim();
  return at === -1 || !expression ? line : `${line.slice(0, at + 1)} return ${expression}`;
};
const isResult = (result) =>
  typeof result?.pass === 'boolean' && typeof result.score === 'number' && typeof result.reason === 'string';
const failed = (message) => ({ pass: false, score: 0, reason: message });
const scored = (result) => {
  if (typeof result === 'boolean') return { pass: result !== negated, score: result !== negated ? 1 : 0 };
  if (typeof result === 'number') {
    const enough = check.threshold === undefined ? result > 0 : result >= check.threshold;
    return { pass: enough !== negated, score: result };
  }
  return { ...result, pass: result.pass !== negated };
};
const javascript = async (output) => {
  try {
    const run = check.file ? await called(check.file, check.function) : new Function('output', 'context', 'process', body(check.value));
    const result = await run(output, context, process);
    if (!['boolean', 'number'].includes(typeof result) && !isResult(result)) {
      throw new Error(`it returned ${JSON.stringify(result)}, not a boolean, a number or {pass, score, reason}`);
    }
    return scored(result);
  } catch (error) {
    return failed(`the function threw: ${error?.message ?? error}`);
  }
};

// Lists of texts may be one text with commas, whose parts may be quoted.
const parts = (text) => {
  const found = [];
  const field = /\s*(?:"((?:[^"\\]|\\.|"")*)"\s*(?=,|$)|([^,"][^,]*))?(?:,|$)/gy;
  while (field.lastIndex < text.length) {
    const match = field.exec(text);
    need(match, 'a quoted part of the value has no end');
    if (match[1] !== undefined) found.push(match[1].replace(/\\(["\\])|""/g, (_, escaped) => escaped ?? '"'));
    else if (match[2]?.trim()) found.push(match[2].trim());
  }
  return found;
};
const lower = (text) => String(text).toLowerCase();
const one = () => {
  need((typeof check.value === 'string' && check.value) || typeof check.value === 'number', 'the value must be a text or a number');
  return String(check.value);
};
const several = () => {
  const list = typeof check.value === 'string' ? parts(check.value) : check.value;
  need(check.value && Array.isArray(list), 'the value must be a list');
  return list.map(String);
};
const text = () => {
  need(typeof check.value === 'string' && check.value, 'the value must be a text');
  return check.value;
};

// XML: elements as objects, repeated ones as lists, text as the value of an element without others.
const NAME = /[A-Za-z_:\u00c0-\uffff][\w:.\-\u00b7-\uffff]*/y;
const element = (source, start) => {
  const open = /<([A-Za-z_:\u00c0-\uffff][\w:.\-\u00b7-\uffff]*)((?:\s+[^\s=<>"'/]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;
  open.lastIndex = start;
  const tag = open.exec(source);
  if (!tag) return undefined;
  const names = [...tag[2].matchAll(/([^\s=]+)\s*=\s*("[^"]*"|'[^']*')/g)];
  if (new Set(names.map((name) => name[1])).size < names.length) return undefined;
  const value = Object.fromEntries(names.map((name) => [`@_${name[1]}`, name[2].slice(1, -1)]));
  if (tag[3]) return { name: tag[1], value: names.length ? value : '', end: open.lastIndex };
  let written = '';
  let at = open.lastIndex;
  while (at < source.length) {
    if (source[at] !== '<') {
      written += source[at];
      at += 1;
    } else if (source.startsWith('</', at)) {
      const close = new RegExp(`</${tag[1].replace(/[.]/g, '\\.')}\\s*>`, 'y');
      close.lastIndex = at;
      if (!close.exec(source) || /&(?![A-Za-z]+;|#\d+;|#x[0-9a-fA-F]+;)/.test(written)) return undefined;
      const bare = Object.keys(value).length === 0;
      return { name: tag[1], value: bare ? written.trim() : value, end: close.lastIndex };
    } else if (/^<(!--|!\[CDATA\[|\?)/.test(source.slice(at, at + 9))) {
      const ending = { '<!-': '-->', '<![': ']]>' }[source.slice(at, at + 3)] ?? '?>';
      const end = source.indexOf(ending, at);
      if (end === -1) return undefined;
      at = end + ending.length;
    } else {
      const child = element(source, at);
      if (!child) return undefined;
      const there = value[child.name];
      if (there === undefined) value[child.name] = child.value;
      else value[child.name] = Array.isArray(there) ? [...there, child.value] : [there, child.value];
      at = child.end;
    }
  }
  return undefined;
};
const reaches = (value, path) => path.split('.').every((key) => {
  const next = value !== null && typeof value === 'object' ? value[key] : undefined;
  value = next;
  return next !== undefined;
});
const wanted = () => {
  const { value } = check;
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value.split(',').map((name) => name.trim());
  const names = Array.isArray(value) ? value : value.requiredElements;
  need(Array.isArray(names), 'the value must name elements');
  return names.map(String);
};
const isXml = (source) => {
  const start = /^\s*(?:<\?xml[^>]*\?>)?(?:\s|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!DOCTYPE[^>[]*>)*/.exec(source)[0].length;
  const root = element(source, start);
  const names = wanted();
  if (!root || !/^(?:\s|<!--[\s\S]*?-->|<\?[\s\S]*?\?>)*$/.test(source.slice(root.end))) return false;
  return names.every((name) => reaches({ [root.name]: root.value }, name));
};
const containsXml = (source) => {
  const roots = [];
  for (let at = source.indexOf('<'); at !== -1; at = source.indexOf('<', at + 1)) {
    NAME.lastIndex = at + 1;
    const root = NAME.test(source) && element(source, at);
    if (root) {
      roots.push(root);
      at = root.end - 1;
    }
  }
  const names = wanted();
  const all = Object.fromEntries(roots.map((root) => [root.name, root.value]));
  return roots.length > 0 && names.every((name) => reaches(all, name));
};
const TAGS = /<(html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|link|meta|br|hr)\b/i;
const containsHtml = (source) => {
  const open = /<[a-zA-Z][a-zA-Z0-9-]*(?:\s[^>]*)?>/.test(source);
  const close = /<\/[a-zA-Z][a-zA-Z0-9-]*\s*>/.test(source);
  const signs = [
    /<[a-zA-Z][a-zA-Z0-9-]*(?:\s[^>]*)?\/>/, /&(?:[a-zA-Z]+|#[0-9]+|#x[0-9a-fA-F]+);/, /<!--[^-]*(?:-[^-]+)*-->/,
    /\s[a-zA-Z-]+=\s*["'][^"']*["']/,
  ].filter((sign) => sign.test(source)).length;
  return open + close + signs + 2 * /<!DOCTYPE\s+html/i.test(source) + 2 * TAGS.test(source) >= 2;
};
const isHtml = (source) => {
  const trimmed = source.trim();
  if (!trimmed || /^<\?xml/i.test(trimmed) || !/<([a-z][a-z0-9-]*)/i.test(trimmed)) return false;
  const outside = trimmed.replace(/<!--[\s\S]*?-->|<!doctype[^>]*>/gi, '');
  return /^<[a-z]/i.test(outside.trim()) && /(>)$/.test(outside.trim()) && (TAGS.test(trimmed) || containsHtml(trimmed));
};
const distance = (left, right) => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (left[i - 1] === right[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[right.length];
};
const wordCount = (output) => {
  const { value } = check;
  need(value !== undefined && value !== null, 'the value is missing');
  const count = output.trim().split(/\s+/).filter(Boolean).length;
  if (typeof value !== 'object') {
    need(!Number.isNaN(Number(value)), 'the value must be a number');
    return count === Number(value);
  }
  const { min, max } = value;
  need(min !== undefined || max !== undefined, 'the value must have min or max');
  need(min === undefined || max === undefined || min <= max, 'min is more than max');
  return (min === undefined || count >= min) && (max === undefined || count <= max);
};

// Tool calls.
const matches = (name, pattern) =>
  new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.')}$`, 'i').test(name);
const calls = () => {
  if (!given.has_trace) {
    console.error('the target reports no tool calls');
    process.exit(1);
  }
  return given.output_messages.flatMap((message) => message.tool_calls ?? []);
};
const pattern = (matcher) => {
  const found = typeof matcher === 'string' ? matcher : (matcher?.pattern ?? matcher?.name);
  need(found, 'a tool needs a name or a pattern');
  return found;
};
const within = (count, { min, max }) => (min === undefined || count >= min) && (max === undefined || count <= max);
const toolUsed = () => {
  const used = (wish) => calls().filter((call) => matches(call.tool, pattern(wish))).length;
  const { value } = check;
  if (typeof value === 'object' && !Array.isArray(value)) return within(used(value), { ...value, min: value.min ?? 1 }) !== negated;
  const wishes = [value].flat();
  need(wishes.length && wishes.every((wish) => wish && typeof wish === 'string'), 'the value must name tools');
  return negated ? !wishes.some(used) : wishes.every(used);
};
const toolSequence = () => {
  const { mode = 'in_order', steps } = Array.isArray(check.value) ? { steps: check.value } : check.value;
  need(steps?.length, 'at least one step is needed');
  const wishes = steps.map(pattern);
  const tools = calls().map((call) => call.tool);
  if (mode === 'exact') return tools.length === wishes.length && wishes.every((wish, index) => matches(tools[index], wish));
  let next = 0;
  for (const tool of tools) if (next < wishes.length && matches(tool, wishes[next])) next += 1;
  return next === wishes.length;
};
const among = (actual, expected) => {
  if (Array.isArray(expected)) {
    return Array.isArray(actual) && actual.length === expected.length && expected.every((item, index) => among(actual[index], item));
  }
  if (expected === null || typeof expected !== 'object') return isDeepStrictEqual(actual, expected);
  if (actual === null || typeof actual !== 'object' || Array.isArray(actual)) return false;
  return Object.entries(expected).every(([key, item]) => Object.hasOwn(actual, key) && among(actual[key], item));
};
const toolArgs = () => {
  const { mode = 'partial', defaults = {}, ignore = [], ...value } = check.value;
  const expected = value.args ?? value.arguments;
  need(expected !== undefined && ['partial', 'exact'].includes(mode), 'the value needs args, and a mode that is partial or exact');
  const ignored = (key) => [ignore].flat().some((entry) => entry === key || (/[*?]/.test(entry) && matches(key, entry)));
  const without = (args, drop) =>
    args === null || typeof args !== 'object' || Array.isArray(args) ? args : Object.fromEntries(Object.entries(args).filter(([key, item]) => !drop(key, item)));
  const wish = without(expected, ignored);
  const compare = mode === 'exact' ? isDeepStrictEqual : among;
  return calls().some((call) => matches(call.tool, pattern(value)) && call.input !== undefined && call.input !== null
    && compare(without(call.input, (key, item) => ignored(key) || (key in defaults && isDeepStrictEqual(item, defaults[key]))), wish));
};
const stepCount = () => {
  const { value } = check;
  need(value.min !== undefined || value.max !== undefined, 'the value must have min or max');
  return within(calls().filter((call) => !(value.pattern ?? value.name) || matches(call.tool, pattern(value))).length, value);
};
const skillUsed = () => {
  const skills = calls().flatMap((call) => {
    if (call.tool.toLowerCase() === 'skill') return [call.input?.skill ?? call.input?.name ?? ''];
    return /([^\s"'/\\]+)[/\\]SKILL\.md/.exec(JSON.stringify(call.input ?? ''))?.[1] ?? [];
  });
  const { value } = check;
  if (typeof value === 'object' && !Array.isArray(value)) {
    const count = skills.filter((skill) => (value.name ? skill === value.name : matches(skill, pattern(value)))).length;
    return negated ? count === 0 : within(count, { ...value, min: value.min ?? (value.max === undefined ? 1 : 0) });
  }
  const wishes = [value].flat();
  need(wishes.length && wishes.every((wish) => wish && typeof wish === 'string'), 'the value must name skills');
  return negated ? !wishes.some((wish) => skills.includes(wish)) : wishes.every((wish) => skills.includes(wish));
};

const isRefusal = (output) => {
  const written = output.trim().toLowerCase().replace(/[\u2018\u2019]/g, "'");
  return !written || /^(i'm sorry|sorry|my apologies|i apologi[sz]e|no comment|as an ai\b|unfortunately, i)/.test(written)
    || /\bi (can't|cannot|can not|won't|will not|don't|do not|am unable to|am not able to|must decline|refuse)\b/.test(written)
    || /\bi'm (unable|not able)\b/.test(written);
};
const checks = {
  equals: (output) => (typeof check.value === 'object' ? isDeepStrictEqual(json(output), check.value) : String(check.value) === output),
  contains: (output) => output.includes(one()),
  icontains: (output) => lower(output).includes(lower(one())),
  'contains-any': (output) => several().some((part) => output.includes(part)),
  'contains-all': (output) => several().every((part) => output.includes(part)),
  'icontains-any': (output) => several().some((part) => lower(output).includes(lower(part))),
  'icontains-all': (output) => several().every((part) => lower(output).includes(lower(part))),
  'starts-with': (output) => output.startsWith(text()),
  regex: (output) => new RegExp(text()).test(output),
  'is-json': (output) => json(output) !== undefined,
  'is-xml': isXml,
  'contains-xml': containsXml,
  'is-html': isHtml,
  'contains-html': containsHtml,
  'is-refusal': isRefusal,
  levenshtein: (output) => {
    need(typeof check.value === 'string', 'the value must be a text');
    return distance(output, check.value) <= (check.threshold ?? 5);
  },
  'word-count': wordCount,
  'trajectory:tool-sequence': toolSequence,
  'trajectory:tool-args-match': toolArgs,
  'trajectory:step-count': stepCount,
};
const ownNegation = { 'trajectory:tool-used': toolUsed, 'skill-used': skillUsed };

const graderOf = async (output) => {
  if (check.type === 'javascript') return javascript(output);
  try {
    if (ownNegation[check.type]) return { pass: ownNegation[check.type](), score: undefined };
    return { pass: checks[check.type](asText(output)) !== negated };
  } catch (error) {
    if (error instanceof Broken || error instanceof SyntaxError) return failed(error.message);
    throw error;
  }
};

let output = original;
try {
  for (const transform of transforms) {
    const run = transform.file?.endsWith('.py')
      ? (...answer) => python(transform.file, transform.function ?? 'get_transform', answer[0])
      : transform.file
        ? await called(transform.file, transform.function)
        : new Function('output', 'context', 'process', transform.code.includes('\n') ? transform.code : `return ${transform.code}`);
    output = await run(output, context, process);
    if (output === null || output === undefined) throw new Error('it returned nothing');
  }
} catch (error) {
  console.error(`the transformation failed: ${error?.message ?? error}`);
  process.exit(1);
}
if (process.argv[2] === '--output') {
  process.stdout.write(JSON.stringify(output));
} else {
  const { pass, score, reason } = await graderOf(output);
  const own = graded && typeof score === 'number' ? score : Number(pass);
  console.log(JSON.stringify({ score: own, reasoning: String(reason ?? `${check.type}: ${pass}`) }));
}
