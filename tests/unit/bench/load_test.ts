import { assertEquals, assertThrows } from "@std/assert";
import { fileURLToPath } from "node:url";
import { bodyProblem, type Expectation } from "../../harness/load/answer.ts";
import { BlockReader } from "../../harness/load/block_reader.ts";
import { CallSource } from "../../harness/load/call_source.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess, outputOf } from "../../harness/child_process.ts";
import { callHeads } from "../../harness/load/h2_frames.ts";
import { LoadRecord, type LoadResult } from "../../harness/load/load_record.ts";
import { frameMessage, LIMIT } from "../../harness/load/rate_limit_message.ts";
import { encodeRateLimitResponse } from "../../../src/wire/rls.ts";
import { decodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { needs } from "../../harness/tools.ts";

const BENCH = fileURLToPath(new URL("../../../scripts/bench/", import.meta.url));
const COMMON = [
  ...["--connections", "4", "--in-flight", "8", "--keys", "50", "--warm-up", "0"],
  // The calls end it, and not the time, however slow the machine is.
  ...["--calls", "200", "--seconds", "100"],
];

Deno.test("bodyProblem: an answer is good only when every part of it is", () => {
  const answer = (overallCode: number, codes: readonly number[], limitRemaining = LIMIT - 1) =>
    frameMessage(encodeRateLimitResponse({
      overallCode,
      statuses: codes.map((code) => ({ code, limitRemaining })),
      responseHeadersToAdd: [],
    }));
  const ok: Expectation = { code: "OK", descriptors: 2 };
  const cases: readonly (readonly [string, Uint8Array, Expectation, string | undefined])[] = [
    ["all OK", answer(1, [1, 1]), ok, undefined],
    ["over limit", answer(2, [1, 2]), ok, "overall code OVER_LIMIT instead of OK"],
    ["over limit as expected", answer(2, [1, 2]), { ...ok, code: "OVER_LIMIT" }, undefined],
    ["one status over", answer(1, [1, 2]), ok, "a status with code OVER_LIMIT"],
    ["a status too few", answer(1, [1]), ok, "1 statuses instead of 2"],
    ["a status too many", answer(1, [1, 1, 1]), ok, "3 statuses instead of 2"],
    ["the count", answer(1, [1, 1]), { ...ok, count: 1 }, undefined],
    ["another count", answer(1, [1, 1], LIMIT - 3), { ...ok, count: 1 }, "count 3 instead of 1"],
    [
      "cut off",
      answer(1, [1, 1]).slice(0, -1),
      ok,
      'Cannot read gRPC body of "26" bytes: it must be one whole plain message',
    ],
    ["an echo", Uint8Array.of(1, 2), { ...ok, code: "echo" }, undefined],
    ["no echo", Uint8Array.of(1, 3), { ...ok, code: "echo" }, "the answer is not the request"],
  ];
  const found = cases.map(([name, body, expected]) => {
    // Octets before and after must not matter.
    const bytes = Uint8Array.of(7, ...body, 7);
    return [name, bodyProblem({ bytes, start: 1, end: bytes.length - 1 }, Uint8Array.of(1, 2), expected)];
  });
  assertEquals(found, cases.map(([name, , , problem]) => [name, problem]));
});

Deno.test("BlockReader: equal octets are read anew once the table has changed", () => {
  const reader = new BlockReader();
  const read = (hex: string) => {
    const bytes = Uint8Array.fromHex(hex);
    return reader.read({ bytes, start: 0, end: bytes.length }, "first").httpStatus;
  };
  // 0x48: `:status` with a value, to be remembered; 0xbe: the newest of what is remembered.
  const statuses = ["4803323030", "be", "be", "4803353030", "be", "be"].map(read);
  assertEquals(statuses, ["200", "200", "200", "500", "500", "500"]);
});

Deno.test("callHeads: a peer that remembers too little gets whole fields each time", () => {
  const fields = [["te", "trailers"], ["x", "y"]] as const;
  const hex = (tableBytes: number) => {
    const { first, later } = callHeads(fields, tableBytes);
    return [first.slice(9).toHex(), later.slice(9).toHex()];
  };
  assertEquals(hex(4_096), ["4002746508747261696c657273" + "4001780179", "bfbe"]);
  const whole = "0002746508747261696c657273" + "0001780179";
  assertEquals(hex(0), [whole, whole]);
});

Deno.test("CallSource: keys go round, also in batches and in strides", () => {
  const keysOf = (options: { keys: number; batch: number; stride: number }, calls: number) => {
    const source = new CallSource({ load: "keys", ...options });
    return Array.from({ length: calls }, () => {
      const { descriptors } = decodeRateLimitRequest(source.next().body.slice(5));
      return descriptors.map(({ entries }) => entries[1]?.value).join(" ");
    });
  };
  assertEquals(keysOf({ keys: 2, batch: 1, stride: 1 }, 3), ["k0", "k1", "k0"]);
  assertEquals(keysOf({ keys: 6, batch: 4, stride: 1 }, 4), [
    "k0 k1 k2 k3",
    "k4 k5 k0 k1",
    "k2 k3 k4 k5",
    "k0 k1 k2 k3",
  ]);
  assertEquals(keysOf({ keys: 6, batch: 1, stride: 3 }, 3), ["k0", "k3", "k0"]);
  assertEquals(keysOf({ keys: 1_000_000, batch: 1, stride: 1 }, 2), ["k0", "k1"]);
  assertThrows(() => new CallSource({ load: "keys", keys: 100, batch: 50, stride: 1 }));
});

Deno.test("LoadRecord: answers of the warm-up are counted, but make no figures", () => {
  const record = new LoadRecord(1_000);
  for (const [start, end] of [[0, 900], [990, 1_010], [1_000, 1_500], [1_400, 2_000]] as const) {
    record.begin(start);
    record.goodAnswer(start, end);
  }
  record.begin(1_900);
  record.badAnswer("http 200, grpc 14");
  record.error("lost");
  assertEquals(record.result(0.25), {
    calls: 5,
    seconds: 1,
    callsPerSecond: 3,
    p50Ms: 500,
    p99Ms: 600,
    errors: { lost: 1 },
    statuses: { "http 200, grpc 14": 1, "http 200, grpc 0": 4 },
    generatorBusy: 0.25,
  });
});

Deno.test("load.ts: every answer of the echo server is checked, at full speed and evenly paced", async () => {
  await using echo = await startEcho();
  const load = (...args: string[]) => runLoad(["--port", echo.port, ...COMMON, ...args]);
  assertEquals(await load("--expect", "echo"), good(200));
  assertEquals(await load("--expect", "OK"), {
    calls: 200,
    errors: { 'Cannot read answer at byte "0": it must be a RateLimitResponse': 200 },
    statuses: { "http 200, grpc 0": 200 },
  });
  assertEquals(await load("--expect", "echo", "--path", "/none.Service/None"), {
    calls: 200,
    errors: { "http 200, grpc 12: The server does not implement the method /none.Service/None": 200 },
    statuses: { "http 200, grpc 12": 200 },
  });
  // The time until the connections stand is part of it: where that takes long, more is given.
  for (const seconds of [0.2, 2, 20]) {
    const { calls, errors } = await load(
      ...["--expect", "echo", "--per-second", "1000", "--seconds", `${seconds}`],
    );
    assertEquals({ isPaced: calls <= 1_000 * seconds, errors }, { isPaced: true, errors: {} });
    if (calls > 50) return;
  }
  throw new Error("Cannot pace calls: hardly any was made");
});

Deno.test({
  ...needs(["openssl"], "load.ts: over TLS to the echo server and to Weir's engine"),
  async fn() {
    await using owned = new AsyncDisposableStack();
    const { server: { keyFile, certFile }, authority } = owned.use(await makeCertificates());
    const tls = ["--key", keyFile, "--cert", certFile];
    const echo = owned.use(await startEcho(tls));
    const weir = owned.use(await startServer("tls_server.ts", tls));
    const load = (port: string, expect: string) =>
      runLoad(["--port", port, "--ca", authority.certFile, "--expect", expect, ...COMMON]);
    assertEquals([await load(echo.port, "echo"), await load(weir.port, "OK")], [good(200), good(200)]);
    const both = ["--port", weir.port, "--ca", authority.certFile, ...COMMON, "--load", "both"];
    assertEquals(await runLoad(both), good(200));
    const twice = [
      "--port",
      weir.port,
      "--ca",
      authority.certFile,
      ...COMMON,
      "--calls",
      "50",
      "--count",
      "9",
    ];
    assertEquals(await runLoad(twice), good(50));
  },
});

type Found = Pick<LoadResult, "calls" | "errors" | "statuses">;

function good(calls: number): Found {
  return { calls, errors: {}, statuses: { "http 200, grpc 0": calls } };
}

async function runLoad(args: string[]): Promise<Found> {
  const output = await outputOf(Deno.execPath(), ["run", "-A", `${BENCH}load.ts`, ...args]);
  const { calls, errors, statuses }: LoadResult = JSON.parse(output);
  return { calls, errors, statuses };
}

function startEcho(args: string[] = []): Promise<AsyncDisposable & { port: string }> {
  return startServer("echo_server.ts", args);
}

async function startServer(script: string, args: string[]): Promise<AsyncDisposable & { port: string }> {
  const child = new ChildProcess(Deno.execPath(), { args: ["run", "-A", `${BENCH}${script}`, ...args] });
  const { port } = await child.find({ port: /Listening for gRPC on '[^']*:(\d+)'/ });
  return { port, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}
