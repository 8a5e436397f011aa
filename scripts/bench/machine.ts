import { cpus, release } from "node:os";
import { type Tool, toolPath } from "../../tests/harness/tools.ts";
import { outputOf } from "../../tests/harness/child_process.ts";

/** The machine that a bench ran on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly kernel: string;
}

/** Versions of everything that a bench measures or measures with. */
export interface Versions {
  readonly deno: string;
  readonly grpcJs: string;
  readonly redis: string;
  readonly memcached: string;
  readonly h2load: string;
  readonly postgres: string;
  readonly pg: string;
}

/** The machine that this runs on. */
export function machine(): Machine {
  const processors = cpus();
  return { cpu: processors[0]?.model ?? "unknown", cores: processors.length, kernel: release() };
}

/** The versions on this machine. */
export async function versions(): Promise<Versions> {
  const config = await Deno.readTextFile(new URL("../../deno.json", import.meta.url));
  const redis = await versionText("redis-server");
  const memcached = await versionText("memcached");
  const h2load = await versionText("h2load");
  const postgres = await versionText("postgres");
  return {
    deno: Deno.version.deno,
    grpcJs: firstGroup(/npm:@grpc\/grpc-js@([\d.]+)/, config),
    redis: firstGroup(/v=(\S+)/, redis),
    memcached: firstGroup(/memcached (\S+)/, memcached),
    h2load: firstGroup(/nghttp2\/(\S+)/, h2load),
    postgres: firstGroup(/PostgreSQL\) (\S+)/, postgres),
    pg: firstGroup(/npm:pg@([\d.]+)/, config),
  };
}

/** The version that a program prints; empty when it is not installed, which is fine for runs without it. */
async function versionText(tool: Tool): Promise<string> {
  const path = toolPath(tool);
  return path === undefined ? "" : await outputOf(path, ["--version"]);
}

function firstGroup(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[1] ?? "unknown";
}
