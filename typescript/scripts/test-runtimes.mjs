// Runs the contract suite and the client's tests on Node 22, Deno and Bun. Run `npm run types` and `npm run setup:runtimes` first.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "runtimes", "node_modules", ".bin", name);
const files = ["./build/test/client.test.js", "./build/test/contract.test.js", "./build/test/behaviours.test.js"];
const runs = { node: ["--test", ...files], deno: ["test", "--allow-all", "--no-check", ...files], bun: ["test", ...files] };
let failures = 0;
for (const [name, args] of Object.entries(runs)) {
  const { status, stdout, stderr } = spawnSync(bin(name), args, { cwd: root, encoding: "utf8" });
  console.log(`${status === 0 ? "ok" : "not ok"} - ${name}`);
  if (status !== 0) {
    failures += 1;
    console.log(stdout, stderr);
  }
}
process.exit(failures === 0 ? 0 : 1);
