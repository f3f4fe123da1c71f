// Reads rows in YAML with npm's readers, and prints whether each of them finds the same as in JSON.
//
//     node yaml_readers.mjs FOLDER-OF-NODE_MODULES ROWS.yaml ROWS.json
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

const [folder, ...paths] = process.argv.slice(2);
const require = createRequire(join(folder, "x.js"));
const YAML = require("yaml");
const jsYaml = require("js-yaml");
const [text, json] = paths.map((path) => readFileSync(path, "utf8"));
const rows = JSON.parse(json);
const readers = {
  "yaml, 1.2": () => YAML.parse(text, { maxAliasCount: 0 }),
  "yaml, 1.1": () => YAML.parse(text, { version: "1.1", maxAliasCount: 0 }),
  "js-yaml": () => jsYaml.load(text),
};
for (const [name, read] of Object.entries(readers)) {
  const found = read();
  const place = rows.findIndex((row, index) => !isDeepStrictEqual(found[index], row));
  const same = place < 0 && found.length === rows.length;
  console.log(`${name}: ${same ? "same" : JSON.stringify([found[place], rows[place]])}`);
}
