#!/usr/bin/env node
// Runs the binary of the package for this platform, which npm installs as an optional dependency.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const name = `@sayso/${process.platform}-${process.arch}`;
let binary;
try {
  binary = createRequire(import.meta.url).resolve(`${name}/bin/sayso`);
} catch {
  console.error(`sayso: the package ${name} is not installed. If this platform is supported, reinstall without --omit=optional.`);
  process.exit(2);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`sayso: cannot run ${binary}: ${error.message}`);
  process.exit(2);
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 2);
  // Ends as the binary ended, so that the caller sees the same signal.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
