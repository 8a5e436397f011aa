import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { concurrencyOverFleet } from "../../harness/webhook_fleet_concurrency.ts";

/** A part of what `deno task soak:webhooks --store postgres` does. */
const EVENTS = 500;

Deno.test({
  ...needs(
    ["postgres"],
    "with a concurrency of 4 a receiver never sees a fifth request of three machines, and sees 4",
  ),
  async fn() {
    const { most, ...report } = await concurrencyOverFleet({ events: EVENTS, concurrency: 4 });
    assertEquals([most, report.problems], [4, []]);
  },
});
