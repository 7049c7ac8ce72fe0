// Packs the client, the command, and a package with the binary for each platform:
//
//   node scripts/pack.mjs OUT_FOLDER [PLATFORM=]BINARY…
//
// PLATFORM is a folder of platform/, such as linux-x64. The default is this machine's.
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [out, ...binaries] = process.argv.slice(2);
const platforms = binaries.map((argument) => {
  const [, platform = `${process.platform}-${process.arch}`, binary] = /^(?:([a-z0-9]+-[a-z0-9]+)=)?(.*)$/s.exec(argument);
  return { platform, binary };
});
if (out === undefined || platforms.length === 0 || !platforms.every(({ platform }) => existsSync(join(root, "platform", platform, "package.json")))) {
  console.error("usage: node scripts/pack.mjs OUT_FOLDER [PLATFORM=]BINARY…; PLATFORM is a folder of platform/");
  process.exit(2);
}
mkdirSync(out, { recursive: true });
const pack = (folder) => {
  const { status } = spawnSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.exit(1);
};
pack(root);
pack(join(root, "platform", "cli"));
for (const { platform, binary } of platforms) {
  const work = mkdtempSync(join(tmpdir(), "sayso-pack-"));
  cpSync(join(root, "platform", platform), work, { recursive: true });
  mkdirSync(join(work, "bin"), { recursive: true });
  copyFileSync(resolve(binary), join(work, "bin", "sayso"));
  chmodSync(join(work, "bin", "sayso"), 0o755);
  pack(work);
  rmSync(work, { recursive: true, force: true });
}
