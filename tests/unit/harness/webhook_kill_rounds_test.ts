import { assertEquals } from "@std/assert";
import { ATTEMPT_POINTS, EXECUTION_POINTS } from "../../harness/webhook_faults.ts";
import { killRounds } from "../../harness/webhook_kill_rounds.ts";

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
    const isWithin = (most: number) => (round: typeof rounds[number]) =>
      round.at === "outside" || (round.nth >= 1 && round.nth <= most);
    assertEquals(rounds.every(isWithin(10)), true);
    // Several share the work, so that each comes to a place less often.
    assertEquals(killRounds({ ...options, seed: 1, processes: 3 }).every(isWithin(3)), true);
  }
});
