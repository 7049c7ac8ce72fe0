/**
 * The client in a real browser. The page and the hub have one origin, as behind a reverse proxy, because a hub refuses pages of other
 * origins.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { connect as connectTcp, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { decide, Listener, TestHub } from "./support/hub.js";

const ROOT = fileURLToPath(new URL("../../dist/", import.meta.url));
const CHROMIUM = ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status === 0);

const PAGE = `<!doctype html><script type="module">
import { hub } from "/dist/index.js";
import { gateTools } from "/dist/adapters/ai.js";
const results = {};
for (const transport of ["websocket", "http"]) {
  try {
    const connection = hub({ url: location.origin, transport });
    const s = await connection.session("In a browser");
    await s.say(["Hello ", "from a page."]);
    const pay = s.tool({ name: "pay", irreversible: true, action: "Pay {amount} euro." }, ({ amount }) => "paid " + amount);
    const { other } = gateTools(s, { other: { execute: async () => "ran" } }, { other: {} });
    results[transport] = [await pay({ amount: "5.00" }), await other.execute({}, {})].join();
    await s.complete();
    await connection.close();
  } catch (error) {
    results[transport] = String(error);
  }
}
await fetch("/result", { method: "POST", body: JSON.stringify(results) });
</script>`;

test("in a browser, a session is heard and a dangerous function asks", { skip: CHROMIUM === undefined && "Chromium is not installed", timeout: 60_000 }, async (t) => {
  const hub = await TestHub.start();
  t.after(() => hub.stop());
  const listener = await Listener.connect(t, hub.url, decide("accept"));
  const target = new URL(hub.url);
  let report: (text: string) => void = () => {};
  const result = new Promise<string>((resolve) => (report = resolve));
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      if (path === "/") return response.writeHead(200, { "Content-Type": "text/html" }).end(PAGE);
      if (path === "/result") {
        report(body);
        return response.writeHead(204).end();
      }
      if (path.startsWith("/dist/")) {
        const file = normalize(join(ROOT, path.slice("/dist/".length)));
        return response.writeHead(200, { "Content-Type": "text/javascript" }).end(file.startsWith(ROOT) ? readFileSync(file) : "");
      }
      const headers = Object.fromEntries(["content-type", "idempotency-key"].flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])));
      const init: RequestInit = { method: request.method ?? "GET", headers };
      if (request.method !== "GET") init.body = body;
      return fetch(new URL(path, hub.url), init).then(
        async (answer) => response.writeHead(answer.status, { "Content-Type": "application/json" }).end(await answer.text()),
        () => response.writeHead(502).end(),
      );
    });
  });
  server.on("upgrade", (request, client) => {
    const upstream = connectTcp(Number(target.port), target.hostname);
    const headers = { ...request.headers, host: target.host, origin: target.origin };
    upstream.write(`GET ${request.url} HTTP/1.1\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")}\r\n`);
    upstream.pipe(client).pipe(upstream);
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const profile = mkdtempSync(join(tmpdir(), "sayso-ts-browser-"));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  // A process group of its own, so that the browser's child processes end with it.
  const browser = spawn(CHROMIUM as string, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`, "--remote-debugging-port=0", url], { stdio: "ignore", detached: true });
  t.after(async () => {
    const exited = new Promise((resolve) => browser.once("exit", resolve));
    process.kill(-(browser.pid as number), "SIGKILL");
    await exited;
    try {
      rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    } catch (error) {
      // A child process may still write while it ends. What it leaves in the folder for temporary files harms no one.
      t.diagnostic(`the browser's profile is not removed: ${String(error)}`);
    }
  });
  const expected = "paid 5.00,ran";
  assert.deepEqual(JSON.parse(await result), { websocket: expected, http: expected });
  assert.equal(listener.of("awaiting.confirmation").length, 2);
});
