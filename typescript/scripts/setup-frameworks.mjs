// Installs the pinned frameworks: node scripts/setup-frameworks.mjs [NAME…]. They need node 22, so the runtimes are installed first.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wanted = process.argv.slice(2);
const all = readdirSync(join(root, "frameworks")).filter((name) => existsSync(join(root, "frameworks", name, "package.json")));
const install = (folder, path = process.env.PATH) => {
  console.log(`installing ${folder}`);
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: join(root, folder), stdio: "inherit", env: { ...process.env, PATH: path } });
  if (status !== 0) process.exit(1);
};
install("runtimes");
const path = join(root, "runtimes", "node_modules", ".bin") + delimiter + process.env.PATH;
for (const name of wanted.length > 0 ? wanted : all) install(join("frameworks", name), path);
