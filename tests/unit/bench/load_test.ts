import { assertEquals, assertThrows } from "@std/assert";
import { bodyProblem, type Expectation } from "../../harness/load/answer.ts";
import { BlockReader } from "../../harness/load/block_reader.ts";
import { CallSource } from "../../harness/load/call_source.ts";
import { callHeads } from "../../harness/load/h2_frames.ts";
import { LoadRecord } from "../../harness/load/load_record.ts";
import { frameMessage, LIMIT } from "../../harness/load/rate_limit_message.ts";
import { encodeRateLimitResponse } from "../../../src/wire/rls.ts";
import { decodeRateLimitRequest } from "../../../src/wire/rls.ts";

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
  const keysOf = (
    options: { keys: number; batch: number; stride: number; firstKey?: number },
    calls: number,
  ) => {
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
  assertEquals(keysOf({ keys: 2, batch: 1, stride: 1, firstKey: 7 }, 3), ["k7", "k8", "k7"]);
  assertThrows(() => new CallSource({ load: "keys", keys: 100, batch: 50, stride: 1 }));
});

Deno.test("LoadRecord: answers of the warm-up are counted, but make no metrics", () => {
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
