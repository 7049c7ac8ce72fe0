// Runs the server scenarios of the official conformance suite with and without the gate, and compares the results check by check.
// `conformance_server.mjs` is the server, and the bridge that makes it, or the gate in front of it, a server with a URL.
//
// Usage: node compare_conformance_server.mjs SAYSO HUB_URL
// A listener that accepts everything must be connected to the hub. Exits with 1 if a check fails or the results differ.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [sayso, hub] = process.argv.slice(2);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const server = [process.execPath, here("conformance_server.mjs"), "serve"];

/** Returns the checks as lines: the scenario, the id and the result of each. */
async function run(command) {
  const bridge = spawn(process.execPath, [here("conformance_server.mjs"), "bridge", ...command], { stdio: ["ignore", "pipe", "ignore"] });
  const [url] = await once(createInterface(bridge.stdout), "line");
  const output = mkdtempSync(join(tmpdir(), "conformance-"));
  const suite = spawn(process.execPath, [here("node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", url, "--output-dir", output], { stdio: "ignore" });
  await once(suite, "exit");
  bridge.kill();
  const checks = readdirSync(output).flatMap((folder) => {
    // The name of the folder ends with the time.
    const scenario = folder.replace(/-\d{4}-\d{2}-\d{2}T.*/, "");
    return JSON.parse(readFileSync(join(output, folder, "checks.json"), "utf8")).map(({ id, status }) => `${scenario}, ${id}: ${status}`);
  });
  rmSync(output, { recursive: true });
  return checks.filter((check) => !check.endsWith("INFO")).sort();
}

const without = await run(server);
const withGate = await run([sayso, "mcp", "--name", "conformance", "--hub", hub, "--", ...server]);
const failed = without.filter((check) => !check.endsWith("SUCCESS"));
if (without.length < 30 || failed.length > 0 || JSON.stringify(without) !== JSON.stringify(withGate)) {
  const missing = without.filter((check) => !withGate.includes(check));
  console.error("the server scenarios differ", { count: without.length, failed, missing, added: withGate.filter((check) => !without.includes(check)) });
  process.exit(1);
}
console.log(`${without.length} checks of server scenarios with the same results with and without the gate`);
process.exit(0);
