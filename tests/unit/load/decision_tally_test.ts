import { assertEquals } from "#assert";
import { DecisionTally } from "../../../src/load/decision_tally.ts";
import { encodeRateLimitResponse, type WireDescriptorStatus } from "../../../src/wire/rls.ts";

const LIMIT = { name: "", requestsPerUnit: 5, unit: 2 };
const LIMITED: WireDescriptorStatus = {
  code: 1,
  currentLimit: LIMIT,
  limitRemaining: 4,
  secondsUntilReset: 9,
};
const OVER: WireDescriptorStatus = { code: 2, currentLimit: LIMIT, limitRemaining: 0, secondsUntilReset: 9 };
const FREE: WireDescriptorStatus = { code: 1, limitRemaining: 0 };
const LONG = { ...LIMITED, currentLimit: { ...LIMIT, name: "n".repeat(200) } };

function answer(overallCode: number, statuses: WireDescriptorStatus[], headers = 0): Uint8Array {
  const responseHeadersToAdd = Array.from({ length: headers }, () => ({ key: "a", value: "b" }));
  return (encodeRateLimitResponse({ overallCode, statuses, responseHeadersToAdd }));
}

/** Counts of OK, OVER_LIMIT and UNKNOWN, and those without a limit; or the problem. */
type Found = readonly [ok: number, over: number, unknown: number, withoutLimit: number] | string;

const CASES: readonly { name: string; body: Uint8Array; found: Found }[] = [
  { name: "limited", body: answer(1, [LIMITED, FREE]), found: [1, 0, 0, 0] },
  { name: "the second one limited", body: answer(1, [FREE, LIMITED]), found: [1, 0, 0, 0] },
  { name: "over limit", body: answer(2, [LIMITED, OVER]), found: [0, 1, 0, 0] },
  { name: "without a limit", body: answer(1, [FREE, FREE]), found: [1, 0, 0, 1] },
  { name: "no decision", body: answer(0, [FREE, FREE]), found: [0, 0, 1, 1] },
  { name: "long names", body: answer(1, [LONG, LONG]), found: [1, 0, 0, 0] },
  { name: "headers", body: answer(2, [OVER, FREE], 2), found: [0, 1, 0, 0] },
  { name: "a status too few", body: answer(1, [FREE]), found: "1 statuses instead of 2" },
  { name: "a status too many", body: answer(1, [FREE, FREE, FREE]), found: "3 statuses instead of 2" },
  {
    name: "cut off",
    body: answer(1, [FREE, FREE]).slice(0, -1),
    found:
      'the answer cannot be read: Cannot read field 2 of "RateLimitResponse": length 2 goes beyond the 1 byte left',
  },
  { name: "an unknown code", body: answer(9, [FREE, FREE]), found: "unknown overall code 9" },
  {
    name: "nothing",
    body: new Uint8Array(0),
    found: "0 statuses instead of 2",
  },
];

for (const { name, body, found } of CASES) {
  Deno.test(`DecisionTally: ${name}`, () => {
    const tally = new DecisionTally(2);
    // Bytes before and after must not matter.
    const bytes = Uint8Array.of(8, ...body, 18, 0);
    const problem = tally.add({ bytes, start: 1, end: bytes.length - 2 });
    const { OK, OVER_LIMIT, UNKNOWN } = tally.counts;
    const counts = [OK, OVER_LIMIT, UNKNOWN, tally.withoutLimit];
    if (typeof found === "string") assertEquals([problem, ...counts], [found, 0, 0, 0, 0]);
    else assertEquals([problem, ...counts], [undefined, ...found]);
  });
}
