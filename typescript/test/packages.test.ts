/** The packages as a new user gets them: packed, installed, type-checked and run. The README is tested here, too. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { BINARY, Listener, TestHub } from "./support/hub.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TSC = join(ROOT, "node_modules", ".bin", "tsc");
const PLATFORMS = readdirSync(join(ROOT, "platform")).filter((name) => name !== "cli").sort();
const HOST = `${process.platform}-${process.arch}`;
const README = readFileSync(join(ROOT, "README.md"), "utf8");

interface Manifest {
  name: string;
  version: string;
  license: string;
  optionalDependencies?: Record<string, string>;
}

/** Runs a program to its end without blocking the listeners of this process. */
function run(command: string, args: string[], cwd: string, env: Record<string, string> = {}): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (text: Buffer) => (output += text.toString()));
    child.stderr.on("data", (text: Buffer) => (output += text.toString()));
    child.on("close", (code) => resolve({ code, output }));
  });
}

describe("the packages", () => {
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "sayso-ts-user-"));
    const which = spawnSync("sh", ["-c", `command -v ${BINARY}`], { encoding: "utf8" }).stdout.trim();
    // The package of another platform contains another file here, so that it is seen if npm installs the wrong one.
    const others = PLATFORMS.filter((name) => name !== HOST).map((name) => `${name}=${join(ROOT, "package.json")}`);
    const packed = await run(process.execPath, [join(ROOT, "scripts", "pack.mjs"), folder, which, ...others], ROOT);
    assert.equal(packed.code, 0, packed.output);
    writeFileSync(join(folder, "package.json"), '{"name":"user","private":true,"type":"module"}');
    const all = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
    assert.equal(all.length, 2 + PLATFORMS.length, all.join());
    const tarballs = all.filter((name) => !others.some((other) => name.includes(other.split("=")[0] as string)));
    const installed = await run("npm", ["install", "--no-audit", "--no-fund", "--offline", ...tarballs.map((name) => `./${name}`)], folder);
    assert.equal(installed.code, 0, installed.output);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test("the client has no dependencies, and only what it needs", () => {
    const installed = join(folder, "node_modules", "@sayso", "client");
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { dependencies?: object };
    assert.equal(manifest.dependencies, undefined);
    assert.deepEqual(readdirSync(installed).sort(), ["README.md", "dist", "package.json"]);
    const files = readdirSync(join(installed, "dist"), { recursive: true }) as string[];
    for (const file of files.filter((name) => name.endsWith(".js"))) {
      // No Node module and no framework is imported statically.
      const imports = [...readFileSync(join(installed, "dist", file), "utf8").matchAll(/^(?:import|export) .*from "([^"]+)"/gm)].map((found) => found[1] as string);
      assert.deepEqual(imports.filter((name) => !name.startsWith(".")), [], file);
    }
  });

  test("the package of each platform contains the binary, and has the version that the command wants", () => {
    const manifest = (path: string) => JSON.parse(readFileSync(join(ROOT, path, "package.json"), "utf8")) as Manifest;
    const { version, license } = manifest(".");
    const cli = manifest("platform/cli");
    assert.equal(cli.version, version);
    assert.deepEqual(cli.optionalDependencies, Object.fromEntries(PLATFORMS.map((name) => [`@sayso/${name}`, version])));
    for (const platform of PLATFORMS) {
      const own = manifest(`platform/${platform}`);
      const [os, cpu] = platform.split("-");
      assert.deepEqual({ ...own, description: "", files: [] }, { name: `@sayso/${platform}`, version, description: "", license, os: [os], cpu: [cpu], files: [], preferUnplugged: true });
      const listed = spawnSync("tar", ["-tvf", join(folder, `sayso-${platform}-${version}.tgz`)], { encoding: "utf8" }).stdout;
      assert.match(listed, /^-rwxr-xr-x .* package\/bin\/sayso$/m, platform);
    }
  });

  test("`npx sayso` runs the binary, with its exit code", async () => {
    const version = await run("npx", ["--no-install", "sayso", "--version"], folder);
    assert.equal(version.code, 0, version.output);
    assert.match(version.output, /sayso/);
    assert.equal((await run("npx", ["--no-install", "sayso", "no-such-command"], folder)).code, 2);
  });

  test("the types are complete without other types, for Node and for bundlers", async () => {
    const imports = ["", "/ai", "/openai-agents", "/langchain", "/mastra", "/claude-agent"].map((path, at) => `import * as m${at} from "@sayso/client${path}";\nvoid m${at};`);
    mkdirSync(join(folder, "types"), { recursive: true });
    writeFileSync(join(folder, "types", "all.ts"), imports.join("\n"));
    for (const module of ["NodeNext", "Preserve"]) {
      const checked = await run(TSC, ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2023,ESNext.Disposable,DOM,DOM.AsyncIterable", "--types", "", "--module", module, "types/all.ts"], folder);
      assert.equal(checked.code, 0, checked.output);
    }
  });

  test("the programs of the README run", async (t) => {
    const server = await TestHub.start();
    t.after(() => server.stop());
    const listener = await Listener.connect(t, server.url, (question) => (question.type === "aaep:agent.awaiting.confirmation" ? { decision: "accept" } : { response: "today" }));
    const programs = [...README.matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1] as string);
    assert.ok(programs.length >= 2);
    mkdirSync(join(folder, "readme"), { recursive: true });
    cpSync(join(ROOT, "node_modules", "@types"), join(folder, "node_modules", "@types"), { recursive: true });
    cpSync(join(ROOT, "node_modules", "undici-types"), join(folder, "node_modules", "undici-types"), { recursive: true });
    programs.forEach((text, at) => writeFileSync(join(folder, "readme", `program${at}.ts`), text));
    const files = programs.map((_, at) => `readme/program${at}.ts`);
    const built = await run(TSC, ["--strict", "--target", "ES2022", "--lib", "ES2023,ESNext.Disposable,DOM,DOM.AsyncIterable", "--types", "node", "--skipLibCheck", "--module", "NodeNext", "--rootDir", ".", "--outDir", "out", ...files], folder);
    assert.equal(built.code, 0, built.output);
    writeFileSync(join(folder, "out", "package.json"), '{"type":"module"}');
    for (const [at] of programs.entries()) {
      const ran = await run(process.execPath, [join(folder, "out", "readme", `program${at}.js`)], folder, { SAYSO_URL: server.url });
      assert.equal(ran.code, 0, ran.output);
      assert.match(ran.output, /paid 5\.00/);
    }
    assert.equal(listener.of("session.completed").length, programs.length);
  });

  test("the fragments of the README are parts of examples", () => {
    const fragments = [...README.matchAll(/^```ts from (\S+)\n(.*?)^```/gms)];
    assert.ok(fragments.length >= 1);
    for (const [, file, text] of fragments) assert.ok(readFileSync(join(ROOT, file as string), "utf8").includes(text as string), file);
  });
});

describe("the examples of the five patterns", () => {
  for (const name of ["decorator", "middleware", "callbacks", "event-emitter", "manual-loop"]) {
    // They are TypeScript, which Node 20 does not run.
    const node = join(ROOT, "runtimes", "node_modules", ".bin", "node");
    const skip = !existsSync(node) && Number(process.versions.node.split(".")[0]) < 22 && "needs `npm run setup:runtimes`";
    test(name, { skip }, async () => {
      for (const [answer, isPaid] of [["accept", true], ["reject", false]] as const) {
        const { output } = await run(process.execPath, [join(ROOT, "scripts", "example.mjs"), name, "--answer", answer], ROOT);
        assert.equal(/^PAID 5\.00 to Ben$/m.test(output), isPaid, output);
        assert.match(output, isPaid ? /session\.completed$/m : /session\.cancelled$/m, output);
      }
    });
  }
});
