import { assertEquals } from "#assert";
import { LoadRecord } from "../../../src/load/load_record.ts";

Deno.test("LoadRecord: answers of the warm-up are counted, but make no metrics", () => {
  const record = new LoadRecord(1_000);
  for (const [start, end] of [[0, 900], [990, 1_010], [1_000, 1_500], [1_400, 2_000]] as const) {
    record.begin(start);
    record.goodAnswer(start, end);
  }
  record.begin(1_900);
  record.badAnswer("UNAVAILABLE");
  record.error("lost");
  assertEquals(record.result(0.25), {
    calls: 5,
    seconds: 1,
    callsPerSecond: 3,
    p50Ms: 500.736,
    p99Ms: 600,
    errors: { lost: 1 },
    statuses: { UNAVAILABLE: 1, OK: 4 },
    generatorBusy: 0.25,
  });
});
