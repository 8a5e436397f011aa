import { assertEquals } from "#assert";
import { stopRequests } from "../../../src/base/stop_requests.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

Deno.test("stop requests: what comes with the first is the same one, what comes later counts", () => {
  const clock = new FakeClock();
  const heard: string[] = [];
  const request = stopRequests({
    clock,
    onFirst: () => void heard.push("first"),
    onAgain: () => void heard.push("again"),
  });
  const seen = [0, 0, 1, 498, 1, 0].map((afterMs) => {
    clock.advance(afterMs);
    request();
    return heard.join(" ");
  });
  assertEquals(seen, ["first", "first", "first", "first", "first again", "first again again"]);
});
