// Reads JUnit files with what reports on GitHub and elsewhere are made with, and prints what they would show.
//
//     node junit_readers.mjs FOLDER-OF-NODE_MODULES FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(join(folder, "x.js"));
const xmlJs = require("xml-js");
const xml2js = require("xml2js");
const { XMLParser, XMLValidator } = require("fast-xml-parser");
const junit2json = await import(pathToFileURL(join(folder, "junit2json", "dist", "esm", "index.js")));

const list = (value) => (value === undefined ? [] : Array.isArray(value) ? value : [value]);
const blamed = (test) => (test.failure ? "failure" : test.error ? "error" : test.skipped ? "skipped" : "passed");

// mikepenz/action-junit-report: an annotation for every test.
function annotations(text) {
  const found = JSON.parse(xmlJs.xml2json(text, { compact: true }));
  return list(found.testsuites.testsuite).flatMap((suite) =>
    list(suite.testcase).map((test) => {
      const at = test._attributes;
      const result = blamed(test);
      const blame = list(test[result])[0];
      return {
        classname: at.classname, name: at.name, file: at.file ?? suite._attributes.file ?? "", line: Number(at.line ?? 0),
        time: Number(at.time), result, message: blame?._attributes.message ?? "", text: blame?._text ?? "",
        answer: test["system-out"]?._text ?? "",
      };
    }),
  );
}

// dorny/test-reporter: suites, groups by class, and the text of what failed.
async function groups(text) {
  const found = await xml2js.parseStringPromise(text);
  const root = found.testsuites;
  return {
    name: root.$.name,
    milliseconds: parseFloat(root.$.time) * 1000,
    suites: (root.testsuite ?? []).map((suite) => ({
      name: suite.$.name.trim(),
      milliseconds: parseFloat(suite.$.time) * 1000,
      tests: (suite.testcase ?? []).map((test) => ({
        group: test.$.classname === suite.$.name ? "" : test.$.classname,
        name: test.$.name.trim(),
        result: test.failure || test.error ? "failed" : test.skipped ? "skipped" : "success",
        milliseconds: parseFloat(test.$.time) * 1000,
        details: (test.failure ?? test.error)?.[0]._ ?? "",
      })),
    })),
  };
}

// datadog-ci: whether the file is valid at all; and what the parser below it makes of it.
function validated(text) {
  const options = { ignoreAttributes: false, attributeNamePrefix: "@", parseTagValue: false, trimValues: false };
  const root = new XMLParser(options).parse(text).testsuites;
  const suites = root && root !== "\n" ? list(root.testsuite) : [];
  return { valid: XMLValidator.validate(text), names: suites.flatMap((suite) => list(suite.testcase).map((test) => test["@name"])) };
}

// junit2json: numbers are numbers.
async function typed(text) {
  const found = await junit2json.parse(text);
  const { tests, failures, errors, skipped } = found;
  const cases = list(found.testsuite).flatMap((suite) => list(suite.testcase));
  return {
    counts: { tests, failures, errors, skipped },
    suites: list(found.testsuite).map(({ name, tests, failures, errors, skipped }) => (
      { name, tests, failures, errors, skipped }
    )),
    cases: cases.map(({ classname, name, time, line }) => ({ classname, name, time, line: Number(line ?? 0) })),
  };
}

const shown = [];
for (const file of files) {
  const text = readFileSync(file, "utf8");
  shown.push({ annotations: annotations(text), groups: await groups(text), validated: validated(text), typed: await typed(text) });
}
console.log(JSON.stringify(shown));
