import { assertEquals } from "#assert";
import { encodeRateLimitResponse } from "../../../src/wire/rls.ts";
import { type Expectation, messageProblem } from "../../harness/bench_answer.ts";
import { LIMIT } from "../../harness/bench_rules.ts";

Deno.test("messageProblem: an answer is good only when every part of it is", () => {
  const answer = (
    overallCode: number,
    codes: readonly number[],
    limitRemaining = LIMIT - 1,
    requestsPerUnit = LIMIT,
  ) => (encodeRateLimitResponse({
    overallCode,
    statuses: codes.map((code) => ({
      code,
      ...(requestsPerUnit === 0 ? {} : { currentLimit: { requestsPerUnit, unit: 7, name: "" } }),
      limitRemaining,
    })),
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
      'Cannot read field 2 of "RateLimitResponse": length 18 goes beyond the 17 bytes left',
    ],
    ["the limit", answer(1, [1, 1]), { ...ok, hasLimit: true }, undefined],
    ["another limit", answer(1, [1, 1], 1, 5), { ...ok, hasLimit: true }, `limit 5 instead of ${LIMIT}`],
    ["another limit, any expected", answer(1, [1, 1], 1, 5), ok, undefined],
    ["no limit", answer(1, [1, 1], 1, 0), { ...ok, hasLimit: true }, `limit missing instead of ${LIMIT}`],
    ["no statuses", answer(1, []), ok, "0 statuses instead of 2"],
    ["no statuses, optional", answer(1, []), { ...ok, areStatusesOptional: true, hasLimit: true }, undefined],
    [
      "no statuses, optional, over limit",
      answer(2, []),
      { ...ok, areStatusesOptional: true },
      "overall code OVER_LIMIT instead of OK",
    ],
    [
      "a status too few, optional",
      answer(1, [1]),
      { ...ok, areStatusesOptional: true },
      "1 statuses instead of 2",
    ],
    ["an echo", Uint8Array.of(1, 2), { ...ok, code: "echo" }, undefined],
    ["no echo", Uint8Array.of(1, 3), { ...ok, code: "echo" }, "the answer is not the request"],
  ];
  const found = cases.map(([name, body, expected]) => {
    // Bytes before and after must not matter.
    const bytes = Uint8Array.of(7, ...body, 7);
    return [name, messageProblem({ bytes, start: 1, end: bytes.length - 1 }, Uint8Array.of(1, 2), expected)];
  });
  assertEquals(found, cases.map(([name, , , problem]) => [name, problem]));
});
