/**
 * Builds the documentation site from `docs` with VitePress into `docs/site/dist`, and follows every link of it:
 * `deno task docs:site`. The first run installs VitePress from npm.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import config from "../deno.json" with { type: "json" };
import { standardOutput } from "../src/base/standard_streams.ts";
import { openApiText } from "./docs/openapi_pages.ts";
import { checkBuiltLinks } from "./site/built_links.ts";
import { sitePages } from "./site/pages.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SITE = join(ROOT, "docs/site");
const LOCK = "package-lock.json";
/** npm writes it last, so it is there once all packages are. */
const INSTALLED = join(SITE, "node_modules/.package-lock.json");
const STEP_LIMIT_MS = 600_000;

/** Writes the sources of the site: its pages, its navigation, and the files that the pages link to. */
async function writeSources(): Promise<void> {
  const folder = join(SITE, "pages");
  await Deno.remove(folder, { recursive: true }).catch(ignoreMissing);
  const { pages, files, sidebar } = sitePages();
  const texts = new Map([
    ...pages,
    ["navigation.json", JSON.stringify({ sidebar })],
    ["public/openapi.json", openApiText(config.version)],
  ]);
  for (const [path, text] of texts) {
    await Deno.mkdir(dirname(join(folder, path)), { recursive: true });
    await Deno.writeTextFile(join(folder, path), text);
  }
  for (const [path, source] of files) {
    const target = join(folder, "public", path);
    await Deno.mkdir(dirname(target), { recursive: true });
    await Deno.copyFile(join(ROOT, source), target);
  }
}

/** Installs what the lock file names, unless it is installed already. */
async function installPackages(): Promise<void> {
  const lock = await Deno.stat(join(SITE, LOCK));
  const installed = await Deno.stat(INSTALLED).catch(ignoreMissing);
  if ((installed?.mtime?.getTime() ?? 0) > (lock.mtime?.getTime() ?? 0)) return;
  await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(STEP_LIMIT_MS);
  const { code } = await new Deno.Command(program, { args: [...args], cwd: SITE, stdin: "null", signal })
    .spawn()
    .status;
  if (code !== 0) throw new Error(`Cannot build the site: ${program} ${args[0]} ended with code ${code}`);
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** Builds and checks the site, and returns the exit code. */
async function main(): Promise<number> {
  await writeSources();
  await installPackages();
  await run(join(SITE, "node_modules/.bin/vitepress"), ["build"]);
  const { pages, links, problems } = await checkBuiltLinks(join(SITE, "dist"));
  for (const problem of problems) standardOutput.stderr(problem);
  standardOutput.stdout(`docs/site/dist: ${pages} pages, ${links} links, ${problems.length} broken`);
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
