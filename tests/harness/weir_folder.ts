import { join } from "node:path";

/** The folder of one service of the tests, and settings that keep it on free loopback ports and in memory. */
export interface WeirFolder {
  readonly path: string;
  readonly rulesFolder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Makes one with these rule files. The folder around the root is watched too, so it belongs to one service alone. */
export async function makeWeirFolder(rules: Readonly<Record<string, string>> = {}): Promise<WeirFolder> {
  const path = await Deno.makeTempDir({ prefix: "weir_" });
  const root = join(path, "root");
  const rulesFolder = join(root, "config");
  await Deno.mkdir(rulesFolder, { recursive: true });
  for (const [name, text] of Object.entries(rules)) await Deno.writeTextFile(join(rulesFolder, name), text);
  const env = {
    BACKEND_TYPE: "memory",
    DISABLE_STATS: "true",
    HOST: "127.0.0.1",
    PORT: "0",
    GRPC_HOST: "127.0.0.1",
    GRPC_PORT: "0",
    DEBUG_HOST: "127.0.0.1",
    DEBUG_PORT: "0",
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: "false",
  };
  return { path, rulesFolder, env };
}
