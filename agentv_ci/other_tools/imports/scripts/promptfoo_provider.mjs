// Ask a provider of promptfoo that is a JavaScript file: promptfoo_provider.mjs PROVIDER PROMPT_FILE [CONFIG]
// An answer that is an object stays one, for checks that read its fields.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [file, promptFile, config = '{}'] = process.argv.slice(2);
const settings = JSON.parse(config);
const prompt = readFileSync(promptFile, 'utf8');
const module = await import(pathToFileURL(resolve(file)));
const exported = module.default?.default ?? module.default ?? module;
const isClass = typeof exported === 'function' && exported.prototype?.callApi;
const options = { id: file, config: settings };
const context = { vars: {}, prompt: { raw: prompt, label: prompt } };
const provider = isClass ? new exported(options) : exported;
const ask = provider.callApi?.bind(provider) ?? provider;
const answer = await (isClass ? ask(prompt, context) : ask(prompt, { ...context, config: settings }));
if (answer?.error) {
  console.error(answer.error);
  process.exit(1);
}
const output = answer?.output === undefined ? answer : answer.output;
if (output === null || output === undefined) {
  console.error('the provider has no output');
  process.exit(1);
}
const contents = [output, JSON.stringify(output)];
const messages = contents.map((content) => ({ role: 'assistant', content }));
process.stdout.write(JSON.stringify(typeof output === 'object' ? { output_messages: messages } : { text: String(output) }));
