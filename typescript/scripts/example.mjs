// Runs one example against a hub, a listener that answers, and a scripted model:
//
//   npm run example NAME [-- --answer accept|reject|none]
//
// NAME is a pattern (examples/NAME.ts) or a framework (frameworks/NAME/example.ts). TEST_SAYSO_BINARY names the binary; the default is `sayso`.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Listener, TestHub } from "../build/test/support/hub.js";
import { FakeModel, prompt } from "../build/test/support/model.js";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [name, ...rest] = process.argv.slice(2);
const answer = rest[rest.indexOf("--answer") + 1] ?? "accept";
const framework = join(root, "frameworks", String(name));
const file = existsSync(join(framework, "example.ts")) ? join(framework, "example.ts") : join(root, "examples", `${name}.ts`);
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
const node = join(root, "runtimes", "node_modules", ".bin", "node");
const child = spawn(existsSync(node) ? node : process.execPath, ["--experimental-strip-types", "--no-warnings", file], {
  stdio: ["ignore", "inherit", "inherit"],
  env: { ...process.env, SAYSO_URL: hub.url, MODEL_URL: model.url, PROMPT: steps },
});
const code = await new Promise((resolve) => child.on("exit", resolve));
// The listener may hear the end a little later than the program ends.
const ends = ["completed", "cancelled", "errored"].map((end) => listener.wait(`session.${end}`));
await Promise.race([...ends, new Promise((resolve) => setTimeout(resolve, 5000))]);
console.log(`HEARD ${listener.types().join(" ")}`);
closers.forEach((close) => close());
model.close();
await hub.stop();
process.exit(code ?? 1);
