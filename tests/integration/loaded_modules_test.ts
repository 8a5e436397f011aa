import { assertEquals } from "#assert";
import { SERVE_FLAGS } from "../../scripts/serve_flags.ts";
import { freePort } from "../harness/free_port.ts";
import { until } from "../harness/until.ts";
import { startWeir, type WeirProcess } from "../harness/weir_process.ts";

const ROOT = new URL("../../", import.meta.url);

/**
 * The modules that may be loaded before a feature is used: no third-party package, none of the large modules of the platform,
 * and nothing of what can be off. `node:crypto` is for the tokens of the debug port.
 */
const PLAIN_MODULES = [
  ...["node:buffer", "node:crypto", "node:inspector/promises", "node:path", "node:process", "node:stream"],
  ...["node:timers", "node:v8", "node:zlib"],
];
const OFF =
  /^npm:|\/node_modules\/|\/npm\/|src\/(?:cli\/(?!runtime_check|output)|load\/|webhooks|telemetry\/(?:tracing|otlp)|stats\/(?:pull|statsd|sinks|flush)|cache\/(?:kv\/|mc\/|in_flight|request_timeouts)|yaml|config\/(?:xds|metric|rule_file\.|file_provider\.ts)|grpc\/(?:grpc_js|tls_server|unix_socket|server_tls)|base\/(?:tls_pair|pem|node_listener))/;
/** The features that the service imports at its start with any settings. */
const ALWAYS = ["rules", "cache", "decisions", "metrics", "http", "grpc", "administration", "health_watch"];

interface GraphModule {
  readonly specifier: string;
  readonly dependencies?: readonly {
    readonly isDynamic?: boolean;
    readonly code?: { readonly specifier?: string };
  }[];
}

/** All modules that the program may load, in the words of `deno info`. */
async function moduleGraph(): Promise<Map<string, GraphModule>> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "main.ts"],
    cwd: ROOT,
  })
    .output();
  const { modules }: { modules: GraphModule[] } = JSON.parse(new TextDecoder().decode(stdout));
  return new Map(modules.map((module) => [module.specifier, module]));
}

/** The static imports from these files on, themselves included. */
function staticClosure(graph: Map<string, GraphModule>, files: readonly string[]): string[] {
  const seen = new Set<string>();
  const waiting = files.map((file) => new URL(file, ROOT).href);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    for (const { isDynamic, code } of graph.get(next)?.dependencies ?? []) {
      if (isDynamic !== true && code?.specifier !== undefined) waiting.push(code.specifier);
    }
  }
  return [...seen].sort();
}

Deno.test("what every service loads holds no package and nothing of what can be off", async () => {
  const graph = await moduleGraph();
  const files = ["main.ts", ...ALWAYS.map((name) => `src/serve/${name}.ts`)];
  assertEquals(files.filter((file) => !graph.has(new URL(file, ROOT).href)), []);
  const loaded = staticClosure(graph, files);
  assertEquals(loaded.filter((specifier) => OFF.test(specifier)), []);
  assertEquals(loaded.filter((specifier) => specifier.startsWith("node:")), PLAIN_MODULES);
});

/** The scripts of the main thread, by their addresses, once these are there. */
async function loadedScripts(
  env: Readonly<Record<string, string>>,
  required: readonly string[],
): Promise<string[]> {
  const flags = [...SERVE_FLAGS, `--inspect=127.0.0.1:${freePort()}`];
  await using weir = await startWeir({ env, flags });
  return await until(`${required.join(" and ")} to be loaded`, async () => {
    const scripts = await scriptsOf(weir);
    return required.every((part) => scripts.some((url) => url.includes(part))) && scripts;
  });
}

async function scriptsOf(weir: WeirProcess): Promise<string[]> {
  const address = () =>
    weir.stderrLines.map((line) => /Debugger listening on (ws:\S+)/.exec(line)?.[1]).find((one) => one);
  await until("the inspector to listen", () => address() !== undefined);
  const socket = new WebSocket(address() ?? "");
  const scripts: string[] = [];
  const enabled = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: "Debugger.enable" }));
  socket.onerror = () => enabled.reject(new Error("Cannot ask the inspector: it did not answer"));
  socket.onclose = () => closed.resolve();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "Debugger.scriptParsed") scripts.push(message.params.url);
    // The existing scripts are reported before the answer.
    if (message.id === 1) enabled.resolve();
  };
  await enabled.promise;
  socket.close();
  await closed.promise;
  return scripts;
}

Deno.test("a plain service has loaded nothing of what is off, and one with features has", async () => {
  const plain = await loadedScripts({}, ["src/grpc/native/native_engine.ts"]);
  assertEquals(plain.filter((url) => OFF.test(url)), []);
  const required = [
    "src/webhooks/api/problem.ts",
    "src/stats/pull_handler.ts",
    "src/stats/pull_text.ts",
  ];
  await loadedScripts({
    ADMIN_TOKEN: "the-administration-token-of-this-test",
    DISABLE_STATS: "false",
    USE_PULL_METRICS: "true",
    PULL_METRICS_ADDR: "127.0.0.1:0",
  }, required);
});
