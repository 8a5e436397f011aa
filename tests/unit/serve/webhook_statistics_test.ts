import { assertEquals } from "#assert";
import { StatsStore, statsText } from "../../../src/stats/store.ts";
import { WebhookStatistics } from "../../../src/serve/webhook_statistics.ts";

function shown(stats: StatsStore, part: string): string[] {
  return statsText(stats).split("\n").filter((line) =>
    line.includes(`.webhooks.${part}`) && !line.endsWith(": 0")
  );
}

Deno.test("webhook statistics: counters go on when a worker is replaced", () => {
  const stats = new StatsStore(10);
  const statistics = new WebhookStatistics(stats);
  const told = (count: number, isNew: boolean) =>
    statistics.take({
      counters: { "attempts.acknowledged": count },
      gauges: { due_now: count },
      durations: {},
    }, isNew);
  const seen: string[][] = [];
  for (const [count, isNew] of [[3, true], [5, false], [1, true], [2, false], [0, true]] as const) {
    told(count, isNew);
    seen.push(shown(stats, "attempts"));
  }
  assertEquals(seen.flat(), [3, 5, 6, 7, 7].map((n) => `ratelimit.webhooks.attempts.acknowledged: ${n}`));
  assertEquals(shown(stats, "due_now"), []);
});

Deno.test("webhook statistics: durations are recorded, triggers counted by their result", () => {
  const stats = new StatsStore(10);
  const statistics = new WebhookStatistics(stats);
  statistics.take({ counters: {}, gauges: {}, durations: { attempt_time: [1, 2.5] } }, true);
  statistics.take({ counters: {}, gauges: {}, durations: { attempt_time: [4] } }, false);
  assertEquals(shown(stats, "attempt_time"), [
    "ratelimit.webhooks.attempt_time.count: 3",
    "ratelimit.webhooks.attempt_time.sum_ms: 7.5",
  ]);
  const rows: [number, Record<string, string>][] = [
    [202, {}],
    [202, { "idempotency-replayed": "true" }],
    [401, {}],
    [403, {}],
    [404, {}],
    [413, {}],
    [415, {}],
    [429, {}],
    [500, {}],
    [503, {}],
  ];
  for (const [status, headers] of rows) statistics.noteTrigger({ status, headers, body: "" });
  assertEquals(shown(stats, "triggers"), [
    "ratelimit.webhooks.triggers.accepted: 1",
    "ratelimit.webhooks.triggers.disabled: 1",
    "ratelimit.webhooks.triggers.failed: 1",
    "ratelimit.webhooks.triggers.invalid: 2",
    "ratelimit.webhooks.triggers.not_found: 1",
    "ratelimit.webhooks.triggers.over_limit: 1",
    "ratelimit.webhooks.triggers.replayed: 1",
    "ratelimit.webhooks.triggers.unauthorized: 1",
    "ratelimit.webhooks.triggers.unavailable: 1",
  ]);
});
