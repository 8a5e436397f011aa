import { assertEquals } from "#assert";
import { type OutageFacts, type PhaseMetrics } from "../../harness/outage_record.ts";
import { problemsOf } from "../../harness/outage_verdict.ts";

const LIMITS = { rate: 100, callMs: 350, growthMb: 20, recoveryMs: 5_000 };

const GOOD: OutageFacts = {
  phases: [
    metrics("warm-up", { ok: 110, refused: 5, longestMs: 900, mostMb: 90 }),
    metrics("before", { ok: 100, longestMs: 350, mostMb: 100 }),
    metrics("away", { refused: 91, longestMs: 350, mostMb: 120 }),
    metrics("back", { ok: 95, refused: 5 }),
  ],
  firstOkMs: 5_000,
  lastRefusedMs: 4_000,
  faults: {},
};

const NOT_AGAIN = "back: calls were not answered again within 5000 ms";
const BAD: readonly [name: string, facts: OutageFacts, problem: string | undefined][] = [
  ["all is good", GOOD, undefined],
  ["no refusal after the return", { ...GOOD, lastRefusedMs: undefined }, undefined],
  ["a fault", { ...GOOD, faults: { "connection closed": 2 } }, "connection closed (2 times)"],
  [
    "calls were not made",
    but("away", { refused: 44 }),
    "only 359 calls were answered, at least 360 were due",
  ],
  ["a call took too long", but("away", { longestMs: 350.6 }), "away: a call took 351 ms, more than 350"],
  ["refused before", but("before", { refused: 1 }), "before: 1 calls were refused while the cache was there"],
  ["no outage", but("away", { ok: 100, refused: 0 }), "away: no call was refused, so no outage was seen"],
  ["memory grew", but("away", { mostMb: 120.4 }), "away: memory grew by 20.4 MB, more than 20"],
  ["memory was not seen", { ...GOOD, phases: GOOD.phases.slice(0, 2) }, "resident memory was not seen"],
  ["never answered again", { ...GOOD, firstOkMs: undefined }, NOT_AGAIN],
  ["answered again too late", { ...GOOD, firstOkMs: 5_001 }, NOT_AGAIN],
  ["refused again too late", { ...GOOD, lastRefusedMs: 5_001 }, NOT_AGAIN],
];

for (const [name, facts, problem] of BAD) {
  Deno.test(`problemsOf: ${name}`, () => {
    assertEquals(problemsOf(facts, LIMITS), problem === undefined ? [] : [problem]);
  });
}

function metrics(phase: PhaseMetrics["phase"], part: Partial<PhaseMetrics>): PhaseMetrics {
  return { phase, seconds: 1, ok: 0, refused: 0, longestMs: 1, leastMb: 0, mostMb: 0, ...part };
}

function but(phase: PhaseMetrics["phase"], part: Partial<PhaseMetrics>): OutageFacts {
  return { ...GOOD, phases: GOOD.phases.map((one) => one.phase === phase ? { ...one, ...part } : one) };
}
