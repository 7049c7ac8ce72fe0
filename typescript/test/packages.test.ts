/** The packages as a new user gets them: packed, installed, type-checked and run. The README is tested here, too. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { BINARY, decide, Listener, Recording, TestHub } from "./support/hub.js";

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
    // The packages of other platforms are packed, but not installed, so any file stands for their binary.
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

  let built: Promise<string[]> | undefined;
  /** Compiles the programs of the README, and returns their paths. */
  const readmePrograms = (): Promise<string[]> => {
    const build = async () => {
      const programs = [...README.matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1] as string);
      assert.ok(programs.length >= 2);
      mkdirSync(join(folder, "readme"), { recursive: true });
      cpSync(join(ROOT, "node_modules", "@types"), join(folder, "node_modules", "@types"), { recursive: true });
      cpSync(join(ROOT, "node_modules", "undici-types"), join(folder, "node_modules", "undici-types"), { recursive: true });
      programs.forEach((text, at) => writeFileSync(join(folder, "readme", `program${at}.ts`), text));
      const files = programs.map((_, at) => `readme/program${at}.ts`);
      const compiled = await run(TSC, ["--strict", "--target", "ES2022", "--lib", "ES2023,ESNext.Disposable,DOM,DOM.AsyncIterable", "--types", "node", "--skipLibCheck", "--module", "NodeNext", "--rootDir", ".", "--outDir", "out", ...files], folder);
      assert.equal(compiled.code, 0, compiled.output);
      writeFileSync(join(folder, "out", "package.json"), '{"type":"module"}');
      return programs.map((_, at) => join(folder, "out", "readme", `program${at}.js`));
    };
    return (built ??= build());
  };

  test("the programs of the README run", async (t) => {
    const programs = await readmePrograms();
    const server = await TestHub.start();
    t.after(() => server.stop());
    const listener = await Listener.connect(t, server.url, (question) => (question.type === "aaep:agent.awaiting.confirmation" ? { decision: "accept" } : { response: "today" }));
    for (const program of programs) {
      const ran = await run(process.execPath, [program], folder, { SAYSO_URL: server.url });
      assert.equal(ran.code, 0, ran.output);
      assert.match(ran.output, /paid 5\.00/);
    }
    assert.equal(listener.of("session.completed").length, programs.length);
  });

  test("the first program of the README finds the personal hub", async (t) => {
    const [program] = await readmePrograms();
    const personal = await TestHub.startPersonal();
    t.after(() => personal.stop());
    let decision: "accept" | "reject" = "accept";
    await Listener.connect(t, personal.url, (question) => decide(decision)(question));
    for (decision of ["accept", "reject"] as const) {
      const recording = await Recording.start(t, personal.url);
      const ran = await run(process.execPath, [program as string], folder, { ...personal.environment, SAYSO_URL: "" });
      assert.equal(/paid 5\.00/.test(ran.output), decision === "accept", ran.output);
      const { code, output } = await recording.validate();
      assert.equal(code, 0, output);
    }
  });

  test("the fragments of the README are parts of examples", () => {
    const fragments = [...README.matchAll(/^```ts from (\S+)\n(.*?)^```/gms)];
    assert.ok(fragments.length >= 1);
    for (const [, file, text] of fragments) assert.ok(readFileSync(join(ROOT, file as string), "utf8").includes(text as string), file);
  });
});

describe("the examples of the five patterns", () => {
  for (const name of ["decorator", "middleware", "callbacks", "event-emitter", "manual-loop"]) {
    test(name, async () => {
      for (const [answer, isPaid] of [["accept", true], ["reject", false]] as const) {
        const { output } = await run(process.execPath, [join(ROOT, "scripts", "example.mjs"), name, "--validate", "--answer", answer], ROOT);
        assert.equal(/^PAID 5\.00 to Ben$/m.test(output), isPaid, output);
        assert.match(output, isPaid ? /session\.completed$/m : /session\.cancelled$/m, output);
        assert.match(output, /^VALID$/m, output);
      }
    });
  }
});

describe("a checkout", () => {
  test("the first commands of the README run in a clean copy", async (t) => {
    const copy = mkdtempSync(join(tmpdir(), "sayso-ts-checkout-"));
    t.after(() => rmSync(copy, { recursive: true, force: true }));
    const installed = ["node_modules", "build", "dist"];
    cpSync(ROOT, copy, { recursive: true, filter: (path) => !installed.includes(basename(path)) });
    const [commands = ""] = README.slice(README.indexOf("## From a checkout")).match(/(?<=^```sh\n)npm ci[^]*?(?=^npm run setup)/m) ?? [];
    assert.match(commands, /^npm ci && npm run build\nnpm run example decorator/);
    const bin = join(copy, "bin");
    mkdirSync(bin);
    symlinkSync(spawnSync("sh", ["-c", `command -v ${BINARY}`], { encoding: "utf8" }).stdout.trim(), join(bin, "sayso"));
    const { TEST_SAYSO_BINARY: _, ...inherited } = process.env;
    const env = { ...inherited, PATH: [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter) } as Record<string, string>;
    const ran = spawnSync("sh", ["-e", "-c", commands], { cwd: copy, env, encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stdout + ran.stderr);
    assert.match(ran.stdout, /^PAID 5\.00 to Ben$/m);
    const early = spawnSync("npm", ["run", "example", "ai"], { cwd: copy, env, encoding: "utf8" });
    assert.equal(early.status, 2, early.stdout + early.stderr);
    assert.match(early.stderr, /run `npm run setup:frameworks -- ai` first/);
  });

  test("the README states the versions of the frameworks that are tested", () => {
    const rows = [...README.matchAll(/^\| `@sayso\/client\/(\S+)` \| .* \| (.+) \|$/gm)];
    assert.deepEqual(rows.map(([, name]) => name).sort(), readdirSync(join(ROOT, "frameworks")).filter((name) => existsSync(join(ROOT, "frameworks", name, "package.json"))).sort());
    for (const [, name, versions] of rows) {
      const { dependencies } = JSON.parse(readFileSync(join(ROOT, "frameworks", name as string, "package.json"), "utf8")) as { dependencies: Record<string, string> };
      for (const stated of (versions as string).split(", ")) {
        const [library, version] = stated.split(" ") as [string, string];
        assert.equal(dependencies[library], version, name);
      }
    }
  });
});
