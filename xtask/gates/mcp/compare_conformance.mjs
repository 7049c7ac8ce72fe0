// Runs a client scenario of the official conformance suite with and without the gate, and compares the results check by check.
//
// Usage: node compare_conformance.mjs SCENARIO SAYSO HUB_URL
// A listener that accepts everything must be connected to the hub. Exits with 1 if a check fails or the results differ.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [scenario, sayso, hub] = process.argv.slice(2);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Returns the checks as lines: the id and the result of each, in the order in which they were made. */
function run(gate) {
  const output = mkdtempSync(join(tmpdir(), "conformance-"));
  const command = [process.execPath, here("conformance_client.mjs"), ...gate].join(" ");
  const suite = here("node_modules/@modelcontextprotocol/conformance/dist/index.js");
  const args = [suite, "client", "--command", command, "--scenario", scenario, "--output-dir", output];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) {
    console.error(stdout, stderr);
    process.exit(1);
  }
  const files = readdirSync(output, { recursive: true }).filter((file) => file.endsWith("checks.json"));
  const checks = files.flatMap((file) => JSON.parse(readFileSync(join(output, file), "utf8")));
  rmSync(output, { recursive: true });
  // INFO is the log of HTTP requests, whose order depends on time.
  return checks.filter(({ status }) => status !== "INFO").map(({ id, status }) => `${id}: ${status}`);
}

const [without, withGate] = [run([]), run([sayso, hub])];
if (without.length === 0 || JSON.stringify(without) !== JSON.stringify(withGate)) {
  console.error(`${scenario} differs`, { without, withGate });
  process.exit(1);
}
console.log(`${scenario}: ${without.length} check(s) with the same results with and without the gate`);
