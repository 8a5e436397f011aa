import { assertEquals, assertThrows } from "#assert";
import { readBenchOptions } from "../../../scripts/bench/options.ts";
import { summarize, summaryTable } from "../../../scripts/bench/report.ts";
import { scenariosOf, type TargetName } from "../../../scripts/bench/scenario.ts";

const PROGRAM = Deno.execPath();

Deno.test("readBenchOptions: the peers, and their parts", () => {
  const peersOf = (...args: string[]) => readBenchOptions(["--peers", ...args]).peers;
  assertEquals(peersOf(), []);
  assertEquals(
    peersOf("--original", PROGRAM, "--peer", "a=10.0.0.1:81", "--peer", "b-2.c=[::1]:82,4711"),
    [
      { name: "original", path: PROGRAM },
      { name: "peer:a", host: "10.0.0.1", port: 81 },
      { name: "peer:b-2.c", host: "::1", port: 82, pid: 4711 },
    ],
  );
  const { parts, results } = readBenchOptions(["--peers"]);
  assertEquals([parts, results], [["keys", "shapes"], undefined]);
  assertEquals(readBenchOptions(["--peers", "--only", "shapes"]).parts, ["shapes"]);
});

const ADDRESS =
  'expected NAME=HOST:PORT or NAME=HOST:PORT,PID, with letters, digits, ".", "_" and "-" in NAME';
const WRONG: Readonly<Record<string, string>> = {
  "--original /bin/sh": "Cannot use --original: it requires --peers",
  "--peer a=host:81": "Cannot use --peer: it requires --peers",
  "--peers --original /none": 'Invalid --original "/none": expected the path of a program',
  "--peers --original /proc/version": 'Invalid --original "/proc/version": expected the path of a program',
  "--peers --original /proc": 'Invalid --original "/proc": expected the path of a program',
  "--peers --peer host:81": `Invalid --peer "host:81": ${ADDRESS}`,
  "--peers --peer a=host": `Invalid --peer "a=host": ${ADDRESS}`,
  "--peers --peer a=host:0": `Invalid --peer "a=host:0": ${ADDRESS}`,
  "--peers --peer a|b=host:81": `Invalid --peer "a|b=host:81": ${ADDRESS}`,
  "--peers --peer a=host:81,x": `Invalid --peer "a=host:81,x": ${ADDRESS}`,
  "--peers --peer a=host:81 --peer a=host:82": 'Invalid --peer "a=host:82": another peer has this name',
  "--peers --only tls": 'Cannot read --only "tls": it must be one of keys, shapes',
};

for (const [line, message] of Object.entries(WRONG)) {
  Deno.test(`readBenchOptions: ${line}`, () => {
    assertEquals(assertThrows(() => readBenchOptions(line.split(" "))).message, message);
  });
}

Deno.test("scenariosOf: peers get every load that Weir and the echo server get", () => {
  const peers = readBenchOptions(["--peers", "--original", PROGRAM, "--peer", "a=host:81"]);
  const targets: readonly TargetName[] = ["echo", "memory", "redis", "original", "peer:a"];
  const loads = ["8x32", "64x4", "256x1", "512x1", "1000x1", "8x1"];
  assertEquals(
    scenariosOf(peers).map((scenario) => [scenario.name, scenario.targets]),
    loads.map((name) => [name, targets]),
  );
  const [alone] = scenariosOf(readBenchOptions(["--only", "keys"]));
  assertEquals(alone?.targets, ["echo", "memory", "redis"]);
});

Deno.test("summaryTable: a row for each system and load, without the CPU of an unknown process", () => {
  const same = { scenario: "256x1", calls: 100, seconds: 1, p50Ms: 4, p99Ms: 8.256, generatorBusy: 0.5 };
  const round = (target: TargetName, callsPerSecond: number, cpuSecondsPer100k: number) => ({
    ...same,
    target,
    callsPerSecond,
    cpuSecondsPer100k,
  });
  const rounds = [
    ...[round("echo", 10_000, 8), round("memory", 50_000, 1), round("redis", 30_000, 2)],
    ...[round("original", 15_000, 6), round("peer:a", 20_000, 0), round("peer:a", 24_000, 0)],
  ];
  assertEquals(summaryTable(summarize(rounds)).split("\n"), [
    "| load | target | calls/s | slowest to fastest | p50 ms | p99 ms | CPU s per 100,000 | calls/s to echo | CPU to echo |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    "| 256x1 | echo | 10,000 | 10,000 to 10,000 | 4.00 | 8.26 | 8.00 | 1.00 | 1.000 |",
    "| 256x1 | memory | 50,000 | 50,000 to 50,000 | 4.00 | 8.26 | 1.00 | 5.00 | 0.125 |",
    "| 256x1 | redis | 30,000 | 30,000 to 30,000 | 4.00 | 8.26 | 2.00 | 3.00 | 0.250 |",
    "| 256x1 | original | 15,000 | 15,000 to 15,000 | 4.00 | 8.26 | 6.00 | 1.50 | 0.750 |",
    "| 256x1 | peer:a | 22,000 | 20,000 to 24,000 | 4.00 | 8.26 | - | 2.20 | - |",
  ]);
});
