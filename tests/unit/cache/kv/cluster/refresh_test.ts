import { assertEquals } from "#assert";
import { KvClusterRefresh } from "../../../../../src/cache/kv/cluster/refresh.ts";
import { FakeClock } from "../../../../harness/fake_clock.ts";

const ASK = {
  "a suspicion": (refresh: KvClusterRefresh) => refresh.suspect(),
  "a request": (refresh: KvClusterRefresh) => refresh.request(),
};

for (const [name, ask] of Object.entries(ASK)) {
  for (const setByMs of [0, 3_600_000, -3_600_000]) {
    Deno.test(`kv cluster refresh: ${name} brings a look soon, with the clock set by ${setByMs} ms`, async () => {
      const clock = new FakeClock();
      let looks = 0;
      const look = () => Promise.resolve(++looks > 0);
      const refresh = new KvClusterRefresh(look, { clock, random: () => 0 });
      refresh.start();
      await refresh.running;
      clock.aheadMs = setByMs;
      clock.advance(50);
      ask(refresh);
      clock.advance(49);
      assertEquals([looks, clock.waiting], [1, 1]);
      clock.advance(1);
      await refresh.running;
      assertEquals(looks, 2);
      refresh.close();
      assertEquals(clock.waiting, 0);
    });
  }
}
