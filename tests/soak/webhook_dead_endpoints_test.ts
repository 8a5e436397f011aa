import { assert } from "@std/assert";
import { freePort } from "../harness/free_port.ts";
import { until } from "../harness/until.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { bySize } from "./soak_options.ts";

const ENDPOINTS = bySize({ short: 20, full: 500 });
/** Pairs of loads, without the dead endpoints and beside them, and events of a load. */
const PAIRS = bySize({ short: 3, full: 9 });
const EVENTS = 20;
/** More than the failures after which attempts have pauses, so that each of the dead ones has a backlog. */
const BACKLOG = 30;
const KEPT = bySize({ short: 0.5, full: 0.95 });
const DEADLINE = { deadlineMs: 300_000 };

Deno.test(`${ENDPOINTS} dead endpoints leave ${ENDPOINTS} that answer ${KEPT} of their throughput`, async (t) => {
  let arrived = 0;
  // Checks nothing, so that it is no bottleneck.
  await using receiver = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, ({ url }) => {
    const isLive = url.includes("/live/");
    if (isLive) arrived++;
    return new Response(null, { status: isLive ? 200 : 500 });
  });
  const url = `http://127.0.0.1:${receiver.addr.port}`;
  await using weir = await WebhookProcess.open({ env: { LOG_LEVEL: "warning" } });
  await weir.start();
  const dead: string[] = [];
  const refused = freePort();
  for (let n = 0; n < ENDPOINTS; n++) {
    await weir.made("/endpoints", { url: `${url}/live/${n}`, events: ["live.*"] });
    // Every second one refuses connections, the others answer 500.
    const place = n % 2 === 0 ? `http://127.0.0.1:${refused}/` : `${url}/dead/${n}`;
    const { id } = await weir.made("/endpoints", { url: place, events: ["dead.*"] });
    dead.push(id);
  }
  let events = 0;
  /** Deliveries a second to the endpoints that answer, from a full backlog. */
  const throughput = async () => {
    const before = arrived;
    const begin = performance.now();
    await Promise.all(Array.from({ length: EVENTS }, () => weir.event({}, `live-${events++}`, "live.event")));
    const count = EVENTS * ENDPOINTS;
    await until("all to arrive", () => arrived - before >= count, DEADLINE);
    return count / (performance.now() - begin) * 1_000;
  };
  const switchDead = async (enabled: boolean) => {
    for (const id of dead) await weir.api("PATCH", `/endpoints/${id}`, { enabled });
  };
  await throughput();
  const pairs: (readonly [without: number, beside: number])[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    if (pair > 0) await switchDead(false);
    const without = await throughput();
    if (pair > 0) await switchDead(true);
    else for (let n = 0; n < BACKLOG; n++) await weir.event({}, `dead-${n}`, "dead.event");
    pairs.push([without, await throughput()]);
  }
  const ratios = pairs.map(([without, beside]) => beside / without);
  const kept = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] ?? 0;
  const attempts = await weir.figure("attempts.connect") + await weir.figure("attempts.status");
  const shown = [
    `kept ${kept.toFixed(3)} (${ratios.map((ratio) => ratio.toFixed(2)).join(", ")})`,
    `deliveries/s ${pairs.flat().map(Math.round).join(", ")}`,
    `${attempts} attempts of dead endpoints`,
  ].join("; ");
  await t.step(shown, () => assert(kept >= KEPT, shown));
});
