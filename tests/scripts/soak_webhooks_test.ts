import { assertEquals, assertThrows } from "@std/assert";
import { readWebhookSoakOptions } from "../../scripts/soak/webhook_options.ts";
import { ATTEMPT_POINTS, EXECUTION_POINTS } from "../support/webhook_faults.ts";
import { killRounds } from "../support/webhook_kill_rounds.ts";

Deno.test("the soak of webhooks reads its flags, and says what would be right", () => {
  assertEquals(readWebhookSoakOptions(["--seed=7"]), {
    ...{ events: 10_000, eventKills: 50, executions: 1_000, executionKills: 20, seed: 7 },
  });
  const { events, executions } = readWebhookSoakOptions(["--what=executions", "--executions=9"]);
  assertEquals([events, executions], [0, 9]);
  assertThrows(() => readWebhookSoakOptions(["--what=deliveries"]));
  assertThrows(() => readWebhookSoakOptions(["--events=none"]));
  assertThrows(() => readWebhookSoakOptions(["--unknown"]));
});

Deno.test("kills are drawn from the seed, every place in turn", () => {
  for (const points of [ATTEMPT_POINTS, EXECUTION_POINTS]) {
    const options = { kills: 20, points, works: 420 };
    const rounds = killRounds({ ...options, seed: 1 });
    assertEquals(rounds, killRounds({ ...options, seed: 1 }));
    assertEquals(rounds.length, 20);
    const places = new Set(rounds.map(({ at }) => at));
    assertEquals([...places].sort(), [...points, "outside"].sort());
    const orders = [1, 2, 3].map((seed) => killRounds({ ...options, seed }).map(({ at }) => at).join());
    assertEquals(new Set(orders).size, 3);
    assertEquals(
      rounds.every((round) => round.at === "outside" || (round.nth >= 1 && round.nth <= 10)),
      true,
    );
  }
});
