// Runs one example against a hub, a listener that answers, and a scripted model:
//
//   npm run example NAME [-- --answer accept|reject|none] [--validate]
//
// NAME is a pattern (examples/NAME.ts) or a framework (frameworks/NAME/example.ts). TEST_SAYSO_BINARY names the binary; the default is `sayso`.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Listener, Recording, TestHub } from "../build/test/support/hub.js";
import { FakeModel, prompt } from "../build/test/support/model.js";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [name, ...rest] = process.argv.slice(2);
const answer = rest.includes("--answer") ? rest[rest.indexOf("--answer") + 1] : "accept";
const framework = join(root, "frameworks", String(name), "example.ts");
const isFramework = existsSync(framework);
// `npm run types` compiles the patterns, because Node 20 does not run TypeScript.
const file = isFramework ? framework : join(root, "build", "examples", `${name}.js`);
const newNode = join(root, "runtimes", "node_modules", ".bin", "node");
if (isFramework && !(existsSync(newNode) && existsSync(join(dirname(file), "node_modules")))) {
  console.error(`run \`npm run setup:frameworks -- ${name}\` first`);
  process.exit(2);
}
if (!existsSync(file)) {
  console.error(`there is no example ${name}`);
  process.exit(2);
}
// The example uses the package by its name, as its user would.
const modules = join(dirname(file), "node_modules", "@sayso");
mkdirSync(modules, { recursive: true });
rmSync(join(modules, "client"), { force: true, recursive: true });
symlinkSync(root, join(modules, "client"), "dir");

const hub = await TestHub.start();
const model = await FakeModel.start();
const closers = [];
// With --validate, `sayso capture` and `sayso validate` check that the events follow the protocol.
const recording = rest.includes("--validate") ? await Recording.start({ after: (close) => closers.push(close) }, hub.url) : undefined;
const listener = await Listener.connect({ after: (close) => closers.push(close) }, hub.url, (question) => {
  console.log(`HEARD ${question.action ?? question.question}`);
  if (answer === "none") return undefined;
  return question.type === "aaep:agent.awaiting.confirmation" ? { decision: answer } : { response: "checking" };
});
const tool = (short) => (name === "claude-agent" ? `mcp__bank__${short}` : short);
const steps = prompt(
  ...(name === "claude-agent" ? [] : [{ text: "I look for your bill. ", calls: [{ tool: "findBill", input: {} }] }]),
  { text: "I pay it now. ", calls: [{ tool: tool("payBill"), input: { amount: "5.00", to: "Ben" } }] },
  { text: "That is all.\n" },
);
const [node, args] = isFramework ? [newNode, ["--experimental-strip-types", "--no-warnings"]] : [process.execPath, []];
const child = spawn(node, [...args, file], {
  stdio: ["ignore", "inherit", "inherit"],
  env: { ...process.env, SAYSO_URL: hub.url, MODEL_URL: model.url, PROMPT: steps },
});
const code = await new Promise((resolve) => child.on("exit", resolve));
// The listener may hear the end a little later than the program ends.
const ends = ["completed", "cancelled", "errored"].map((end) => listener.wait(`session.${end}`));
const end = await Promise.race([...ends, new Promise((resolve) => setTimeout(resolve, 5000))]);
console.log(`HEARD ${listener.types().join(" ")}`);
if (recording !== undefined) {
  const { code, output } = end === undefined ? { code: 1, output: "the session did not end" } : await recording.validate();
  console.log(code === 0 ? "VALID" : `INVALID\n${output}`);
}
closers.forEach((close) => close());
model.close();
await hub.stop();
process.exit(code ?? 1);
