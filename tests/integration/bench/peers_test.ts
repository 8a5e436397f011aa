import { assertEquals } from "#assert";
import { ChildProcess } from "../../harness/child_process.ts";
import { documentPages } from "../../harness/documents.ts";
import { freePort } from "../../harness/free_port.ts";
import { needs } from "../../harness/tools.ts";
import { weirCommand } from "../../harness/weir_command.ts";
import { portOf, startBenchWeir } from "../../../scripts/bench/target.ts";

const MAIN = new URL("../../../scripts/bench/main.ts", import.meta.url).pathname;
const ROW =
  /^\| 8x32 \| (\S+) \| [\d,]+ \| [\d,]+ to [\d,]+ \| [\d.]+ \| [\d.]+ \| (\S+) \| [\d.]+ \| (\S+) \|$/;

/** Runs the bench with these flags: its exit code and what it wrote. */
async function ran(flags: string): Promise<{ code: number; stdout: readonly string[]; stderr: string }> {
  const args = ["run", "-A", MAIN, ...flags.split(" ")];
  await using child = new ChildProcess(Deno.execPath(), { args });
  const { code } = await child.exited;
  return { code, stdout: child.stdoutLines, stderr: child.stderrLines.join("\n") };
}

/** Weir with the rules that the README gives to peers. */
async function startPeer(rules = readmeRules()): Promise<AsyncDisposable & { pid: number; port: number }> {
  const weir = await startBenchWeir({ BACKEND_TYPE: "memory" }, { rules: { "bench.yaml": rules } });
  await weir.listening(["gRPC"]);
  const { pid, grpcAddress } = weir;
  return { pid, port: portOf(grpcAddress), [Symbol.asyncDispose]: () => weir[Symbol.asyncDispose]() };
}

/** A program with the environment of the original: Weir, which reads the rest of it by other names. */
async function makeOriginal(path: string): Promise<string> {
  const { command, args } = weirCommand([]);
  const line = `BACKEND_TYPE=kv KV_URL=$REDIS_URL exec ${[command, ...args].join(" ")}`;
  await Deno.writeTextFile(path, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  return path;
}

function readmeRules(): string {
  const page = documentPages().find(({ path }) => path === "scripts/bench/README.md");
  const block = page?.blocks.find(({ marks }) => marks.includes("rules"));
  if (block === undefined) throw new Error("Cannot read the README of the bench: it has no rules");
  return block.text;
}

Deno.test({
  ...needs(["redis-server"], "bench --peers: a row for each system, and its own results file"),
  async fn() {
    await using peer = await startPeer();
    const folder = await Deno.makeTempDir();
    const results = `${folder}/results`;
    const original = await makeOriginal(`${folder}/original`);
    const servers =
      `--original ${original} --peer known=127.0.0.1:${peer.port},${peer.pid} --peer other=127.0.0.1:${peer.port}`;
    const quick = "--peers --quick --only keys --seconds 0.1";
    const { code, stdout, stderr } = await ran(`${quick} --results ${results} ${servers}`);
    assertEquals([code, code === 0 ? "" : stderr], [0, ""]);
    const rows = stdout.map((line) => ROW.exec(line)).filter((match) => match !== null);
    // The CPU of a process is a number, whatever it is.
    const cpu = (text = "") => /^[\d.]+$/.test(text) ? "measured" : text;
    assertEquals(rows.map(([, target, own, toEcho]) => [target, cpu(own), cpu(toEcho)]), [
      ["echo", "measured", "measured"],
      ["memory", "measured", "measured"],
      ["redis", "measured", "measured"],
      ["original", "measured", "measured"],
      ["peer:known", "measured", "measured"],
      ["peer:other", "-", "-"],
    ]);
    const sum = stdout.find((line) => line.startsWith("- original: sum of all counters"));
    assertEquals(sum?.replaceAll(/\d+/g, "n"), "- original: sum of all counters = n = hits answered");
    assertEquals(Array.from(Deno.readDirSync(results), ({ name }) => name), ["peers.json"]);
    await Deno.remove(folder, { recursive: true });
  },
});

Deno.test("bench --peers: a peer that does not answer rightly ends the run", async () => {
  await using peer = await startPeer("domain: bench\n");
  await using good = await startPeer();
  const free = freePort();
  const cases: readonly (readonly [flags: string, code: number, stderr: string])[] = [
    [
      `--peers --peer other=127.0.0.1:${peer.port}`,
      1,
      `Cannot trust "peer:other" at 127.0.0.1:${peer.port}: limit missing instead of 4000000000`,
    ],
    [
      `--peers --peer other=127.0.0.1:${free}`,
      1,
      `Cannot call "peer:other" at 127.0.0.1:${free}: 14 UNAVAILABLE`,
    ],
    [
      `--peers --peer other=127.0.0.1:${good.port},9999999999`,
      1,
      'Cannot measure the CPU of "peer:other": no process has the PID 9999999999',
    ],
    ["--peers --original /bin/true", 1, 'Cannot start the original "/bin/true": '],
    ["--peers --original /none", 2, 'Invalid --original "/none": expected the path of a program'],
    ["--original /bin/true", 2, "Cannot use --original: it requires --peers"],
    ["--unknown", 2, "Unknown option '--unknown'"],
  ];
  const found: (readonly [flags: string, code: number, stderr: string])[] = [];
  for (const [flags, , expected] of cases) {
    const { code, stderr } = await ran(flags);
    found.push([flags, code, stderr.startsWith(expected) ? expected : stderr]);
  }
  assertEquals(found, [...cases]);
});
