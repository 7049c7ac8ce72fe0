// Packs the client, the command and the binary of one platform:
//
//   node scripts/pack.mjs OUT_FOLDER BINARY [PLATFORM]
//
// PLATFORM is a folder of platform/, such as linux-x64. The default is this machine's.
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [out, binary, platform = `${process.platform}-${process.arch}`] = process.argv.slice(2);
if (out === undefined || binary === undefined || !existsSync(join(root, "platform", platform, "package.json"))) {
  console.error("usage: node scripts/pack.mjs OUT_FOLDER BINARY [PLATFORM]; PLATFORM is a folder of platform/");
  process.exit(2);
}
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "sayso-pack-"));
cpSync(join(root, "platform", platform), work, { recursive: true });
mkdirSync(join(work, "bin"), { recursive: true });
copyFileSync(resolve(binary), join(work, "bin", "sayso"));
chmodSync(join(work, "bin", "sayso"), 0o755);
for (const folder of [root, join(root, "platform", "cli"), work]) {
  const packed = spawnSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  if (packed.status !== 0) process.exit(1);
}
rmSync(work, { recursive: true, force: true });
