// Checks the types and runs the tests and the example of each framework: node scripts/test-frameworks.mjs [NAME…].
// Run `npm run build`, `npm run types` and `npm run setup:frameworks` first. TEST_SAYSO_BINARY names the sayso binary.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const node = join(root, "runtimes", "node_modules", ".bin", "node");
const wanted = process.argv.slice(2);
const all = readdirSync(join(root, "frameworks")).filter((name) => existsSync(join(root, "frameworks", name, "package.json")));
let failures = 0;
const run = (label, command, args, check = () => true) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  const passed = status === 0 && check(stdout);
  console.log(`${passed ? "ok" : "not ok"} - ${label}`);
  if (!passed) {
    failures += 1;
    console.log(stdout, stderr);
  }
};
for (const name of wanted.length > 0 ? wanted : all) {
  run(`${name}: types`, join(root, "node_modules", ".bin", "tsc"), ["-p", `frameworks/${name}`]);
  run(`${name}: tests`, node, ["--test", `frameworks/${name}/${name}.test.ts`]);
  const example = ["scripts/example.mjs", name, "--validate"];
  const isValid = (output) => /^VALID$/m.test(output);
  run(`${name}: example`, process.execPath, example, (output) => output.includes("PAID 5.00 to Ben") && isValid(output));
  run(`${name}: example, refused`, process.execPath, [...example, "--answer", "reject"], (output) => !output.includes("PAID") && isValid(output));
}
process.exit(failures === 0 ? 0 : 1);
