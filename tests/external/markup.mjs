// Print what html-validate finds in HTML files: node markup.mjs NODE_MODULES PRESET FILE...
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, preset, ...files] = process.argv.slice(2);
const { HtmlValidate } = await import(pathToFileURL(`${modules}/html-validate/dist/esm/index.js`));
const validator = new HtmlValidate({ extends: [`html-validate:${preset}`] });
for (const file of files) {
  const { results } = await validator.validateString(readFileSync(file, "utf8"));
  for (const { ruleId, line, column, message } of results.flatMap((each) => each.messages)) {
    console.log(`${file}:${line}:${column} ${ruleId}: ${message}`);
  }
}
