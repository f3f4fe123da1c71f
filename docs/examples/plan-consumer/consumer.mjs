// Reads a plan of agentv-ci, checks that it is whole, and prints every case as a chat request, one JSON a line:
//   node consumer.mjs plan.json > requests.jsonl
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const SCHEMA = "https://org.github.io/agentv-action/schemas/plan-v1.schema.json";

const sha256 = (text) => createHash("sha256").update(text, "utf8").digest("hex");

// RFC 8785: what JSON.stringify writes, with sorted keys.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

function readPlan(path) {
  const plan = JSON.parse(readFileSync(path, "utf8"));
  if (plan.$schema !== SCHEMA) throw new Error(`this reads ${SCHEMA}, not ${plan.$schema}`);
  const { digest, ...rest } = plan;
  if (sha256(canonical(rest)) !== digest) throw new Error("the plan was changed after it was compiled");
  return plan;
}

function requestOf(plan, { id, digest, target, guidelines, inputMessages, trials }) {
  const text = (part) => part.text ?? (part.type === "file" ? plan.files[part.sha256].text : `<${part.path ?? part.url}>`);
  const messages = inputMessages.map(({ role, content }) => ({ role, content: content.map(text).join("\n\n") }));
  const rules = guidelines.map(({ sha256 }) => ({ role: "system", content: plan.files[sha256].text }));
  return { id, digest, trials, model: plan.targets[target].model ?? null, messages: [...rules, ...messages] };
}

try {
  const plan = readPlan(process.argv[2]);
  for (const each of plan.cases) console.log(JSON.stringify(requestOf(plan, each)));
} catch (error) {
  console.error(`${process.argv[2]}: ${error.message}`);
  process.exitCode = 1;
}
