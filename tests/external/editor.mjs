// An editor in front of yaml-language-server. Reads questions as lines of JSON and prints the answers in the same way:
// the documents to open first (path → text), and the method to ask at a position of the last of them. Without a
// method the answer is the diagnostics of all of them: path → diagnostics.
//
//     node editor.mjs FOLDER-OF-NODE_MODULES SETTINGS
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, settings] = [process.argv[2], JSON.parse(process.argv[3])];
const rpc = createRequire(join(folder, "x.js"))("vscode-jsonrpc/node");
const server = spawn(join(folder, ".bin", "yaml-language-server"), ["--stdio"], { stdio: ["pipe", "pipe", "ignore"] });
const client = rpc.createMessageConnection(
  new rpc.StreamMessageReader(server.stdout),
  new rpc.StreamMessageWriter(server.stdin),
);

const published = new Map();
let wakened = () => {};
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => (wakened = resolve));
};
let isConfigured = false;
client.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics }) => {
  published.set(uri, diagnostics);
  wakened();
});
client.onRequest("workspace/configuration", ({ items }) => {
  isConfigured = true;
  setImmediate(() => wakened());
  return items.map(({ section }) => settings[section] ?? null);
});
client.onRequest(() => null);
client.listen();

const completion = { completionItem: { snippetSupport: true, documentationFormat: ["markdown"] } };
const textDocument = { completion, hover: { contentFormat: ["markdown"] }, publishDiagnostics: {} };
const capabilities = { workspace: { configuration: true }, textDocument };
await client.sendRequest("initialize", { processId: null, rootUri: null, capabilities });
client.sendNotification("initialized", {});
client.sendNotification("workspace/didChangeConfiguration", { settings });
await until(() => isConfigured);

for await (const line of createInterface({ input: process.stdin })) {
  const { documents, method, position } = JSON.parse(line);
  const late = setTimeout(() => process.exit(1), 60_000);
  const uris = Object.fromEntries(Object.keys(documents).map((path) => [path, pathToFileURL(path).href]));
  for (const [path, uri] of Object.entries(uris)) {
    const document = { uri, languageId: "yaml", version: 1, text: documents[path] };
    client.sendNotification("textDocument/didOpen", { textDocument: document });
  }
  let answer;
  if (method) {
    const asked = { textDocument: { uri: Object.values(uris).at(-1) }, position };
    answer = await client.sendRequest(`textDocument/${method}`, asked);
  } else {
    await until(() => Object.values(uris).every((uri) => published.has(uri)));
    answer = Object.fromEntries(Object.entries(uris).map(([path, uri]) => [path, published.get(uri)]));
  }
  clearTimeout(late);
  console.log(JSON.stringify(answer));
}
await client.sendRequest("shutdown");
server.kill();
process.exit(0);
