import { ChildProcess } from "../../tests/harness/child_process.ts";
import { median } from "../../tests/harness/percentile.ts";
import { residentMb } from "../../tests/harness/process_metrics.ts";
import { type CommandLine, commandOf } from "../../tests/harness/weir_command.ts";
import { makeWeirFolder } from "../../tests/harness/weir_folder.ts";
import { SERVE_FLAGS } from "../serve_flags.ts";
import { compiler } from "./program.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const ROUNDS = 3;
const IDLE_MS = 1_000;
const RULES = {
  "shop.yaml": "domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]\n",
};
const REQUEST = JSON.stringify({
  domain: "shop",
  descriptors: [{ entries: [{ key: "k", value: "v" }] }],
});

/** A way to run Weir. */
interface Way {
  readonly name: string;
  readonly line: CommandLine;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Compares the time from the start to the first decision, and the memory of an idle process, of the program and of
 * `deno run`: medians of rounds in turn, after one that fills the caches.
 */
export async function compareStarts(
  program: string,
  { isOnBase }: { readonly isOnBase: boolean },
): Promise<string[]> {
  const passed = { PATH: Deno.env.get("PATH") ?? "", HOME: Deno.env.get("HOME") ?? "" };
  const ways: readonly Way[] = [
    { name: "the program", line: { command: program, args: ["serve"] }, env: {} },
    ...(isOnBase ? [await baseRelease(passed)] : []),
    { name: `deno run, ${Deno.version.deno}`, line: commandOf(undefined, ["serve"]), env: passed },
  ];
  const rounds = new Map(ways.map((way) => [way, [] as { firstMs: number; idleMb: number }[]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [way, found] of rounds) {
      const one = await startOnce(way, round === 0 ? 0 : IDLE_MS);
      if (round > 0) found.push(one);
    }
  }
  const { size } = await Deno.stat(program);
  const lines = [...rounds].map(([{ name }, found]) => {
    const firstMs = median(found.map((one) => one.firstMs)).toFixed(0);
    return `${name}: first decision after ${firstMs} ms, ${
      median(found.map((one) => one.idleMb)).toFixed(0)
    } MB`;
  });
  return [`size of the program: ${Math.round(size / 1e6)} MB`, ...lines];
}

/** The sources, run by the release of Deno that the program is made with. */
async function baseRelease(env: Readonly<Record<string, string>>): Promise<Way> {
  const { deno, folder, needs } = await compiler();
  const args = ["run", ...needs, ...SERVE_FLAGS, "--preload=scripts/binary/shims.ts", "main.ts", "serve"];
  return {
    name: "deno run, the release of the program",
    line: { command: deno, args },
    env: { ...env, DENO_DIR: folder },
  };
}

async function startOnce({ line, env }: Way, idleMs: number): Promise<{ firstMs: number; idleMb: number }> {
  const folder = await makeWeirFolder(RULES);
  try {
    const begin = performance.now();
    await using child = new ChildProcess(line.command, {
      args: line.args,
      cwd: ROOT,
      env: { ...env, ...folder.env },
    });
    const { http } = await child.find({ http: /Listening for HTTP on '([^']+)'/ });
    const response = await fetch(`http://${http}/json`, { method: "POST", body: REQUEST });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`Cannot compare starts: the decision has status ${response.status}`);
    const firstMs = performance.now() - begin;
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    return { firstMs, idleMb: await residentMb(child.pid) };
  } finally {
    await Deno.remove(folder.path, { recursive: true });
  }
}
