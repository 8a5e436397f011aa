import { assertEquals } from "@std/assert";
import { needs } from "../harness/tools.ts";
import { concurrencyOverFleet } from "../harness/webhook_concurrency.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { deliverBesideHanging } from "./webhook_hanging.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { pressByLargeInputs, starveByHanging } from "../harness/workflow_pressure.ts";
import { bySize, onlyFull } from "./soak_options.ts";

const HANGING = { hanging: 130, healthy: 1, seconds: 40 };
const EVENTS = bySize({ short: 200, full: 2_500 });

Deno.test({
  ...needs(
    ["postgres"],
    "with a concurrency of 4 a receiver never sees a fifth request of three machines, and sees 4",
  ),
  async fn() {
    const { most, problems } = await concurrencyOverFleet({ events: EVENTS, concurrency: 4 });
    assertEquals([most, problems], [4, []]);
  },
});

Deno.test({
  ...onlyFull({ name: "130 endpoints that hang leave the one that answers its rate" }),
  async fn() {
    await using weir = await WebhookProcess.open({ env: { LOG_LEVEL: "warning" } });
    await weir.start();
    assertEquals((await deliverBesideHanging(weir, HANGING)).problems, []);
  },
});

Deno.test({
  ...onlyFull(
    needs(["postgres"], "130 endpoints that hang leave the one that answers its rate, on three machines"),
  ),
  async fn() {
    await using fleet = await WebhookFleet.open({ env: { LOG_LEVEL: "warning" } });
    await fleet.start();
    assertEquals((await deliverBesideHanging(fleet, HANGING)).problems, []);
  },
});

Deno.test({
  ...onlyFull({ name: "1,500 runs of a workflow that hangs keep nobody else's waiting" }),
  async fn() {
    const { problems } = await starveByHanging({ runs: 1_500, withinSeconds: 45 });
    assertEquals(problems, []);
  },
});

Deno.test({
  ...onlyFull({ name: "inputs of 1 MiB that wait take no more memory than they may" }),
  async fn() {
    const { problems, errors } = await pressByLargeInputs({ calls: 220, seconds: 30, mostMb: 1_000 });
    assertEquals([problems, errors], [[], {}]);
  },
});
