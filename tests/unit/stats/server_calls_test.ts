import { assertEquals } from "@std/assert";
import { serverCalls } from "../../../src/stats/server_calls.ts";
import { StatsStore } from "../../../src/stats/store.ts";

Deno.test("server calls: each method has its total and its response time from the start, services of one method share them", () => {
  const stats = new StatsStore(10);
  const of = serverCalls(stats);
  const [check, again] = [of("Check"), of("Check")];
  of("ShouldRateLimit");
  check.started();
  again.started();
  check.ended(0.25);
  again.ended(1.5);
  again.started();
  assertEquals(new Map(stats.counters()).get("ratelimit_server.Check.total_requests"), 3);
  assertEquals(new Map(stats.counters()).get("ratelimit_server.ShouldRateLimit.total_requests"), 0);
  assertEquals([...stats.timers()].map(([name, { count, sumMs }]) => [name, count, sumMs]), [
    ["ratelimit_server.Check.response_time", 2, 1.75],
    ["ratelimit_server.ShouldRateLimit.response_time", 0, 0],
  ]);
});
