// Asks GitHub's own language service about workflows and actions, and prints what it finds as JSON: [file, line, message].
// It imports JSON without saying so, which Node refuses: bundle it with esbuild first.
//
//     REPOSITORY=... ACTIONS=... node language_service.bundle.mjs FILE...
//
// ACTIONS/<owner>/<name>/action.yml describes a third-party action; REPOSITORY contains our own.
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { validate } from "@actions/languageservice";
import { TextDocument } from "vscode-languageserver-textdocument";
import YAML from "yaml";

const OURS = "org/agentv-action";
const { REPOSITORY, ACTIONS } = process.env;

const folderOf = ({ owner, name, path }) =>
  join(`${owner}/${name}` === OURS ? REPOSITORY : join(ACTIONS, owner, name), path ?? "");

const found = [];
for (const file of process.argv.slice(2)) {
  // The service does not look into actions of the same repository; by their other name it does.
  const text = readFileSync(file, "utf8").replaceAll(/uses: \.\/$/gm, `uses: ${OURS}@v1`);
  const document = TextDocument.create(pathToFileURL(file).href, "yaml", 1, text);
  const problems = await validate(document, {
    actionsMetadataProvider: {
      fetchActionMetadata: async (action) => {
        const path = join(folderOf(action), "action.yml");
        return existsSync(path) ? YAML.parse(readFileSync(path, "utf8")) : undefined;
      },
    },
    fileProvider: {
      getFileContent: async (reference) => {
        const name = join(".github", "workflows", basename(reference.path));
        return { name, content: readFileSync(join(REPOSITORY, name), "utf8") };
      },
    },
  });
  for (const { range, message } of problems) found.push([file, range.start.line + 1, message]);
}
process.stdout.write(JSON.stringify(found));
