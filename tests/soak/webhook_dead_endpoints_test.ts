import { assert } from "#assert";
import { freePort } from "../harness/free_port.ts";
import { until } from "../harness/until.ts";
import { WebhookProcess } from "../harness/webhook_process.ts";
import { bySize } from "./soak_options.ts";

const ENDPOINTS = bySize({ short: 20, full: 500 });
/**
 * Pairs of loads, without the dead endpoints and next to them: other work on the machine slows some loads down, and more
 * pairs follow while the median is too low.
 */
const PAIRS = bySize({ short: [3, 6], full: [5, 15] } as const);
/** Events of a load. */
const EVENTS = 20;
/** More than the failures after which attempts have pauses, so that each of the dead ones has a backlog. */
const BACKLOG = 30;
const KEPT = bySize({ short: 0.5, full: 0.95 });
const SETTLE_MS = 2_000;
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
    // An endpoint that is enabled is attempted once without a pause.
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  };
  await throughput();
  const pairs: (readonly [without: number, beside: number])[] = [];
  const kept = () => {
    const ratios = pairs.map(([without, beside]) => beside / without).sort((a, b) => a - b);
    return ratios[Math.floor(ratios.length / 2)] ?? 0;
  };
  const [fewest, most] = PAIRS;
  while (pairs.length < fewest || (pairs.length < most && kept() < KEPT)) {
    const isFirst = pairs.length === 0;
    if (!isFirst) await switchDead(false);
    const without = await throughput();
    if (!isFirst) await switchDead(true);
    else for (let n = 0; n < BACKLOG; n++) await weir.event({}, `dead-${n}`, "dead.event");
    pairs.push([without, await throughput()]);
  }
  const attempts = await weir.metric("attempts.connect") + await weir.metric("attempts.status");
  const speeds = pairs.map((pair) => pair.map(Math.round).join(" and ")).join(", ");
  const shown = `kept ${kept().toFixed(3)}: ${speeds} deliveries/s; ${attempts} attempts of dead endpoints`;
  await t.step(shown, () => assert(kept() >= KEPT, shown));
});
