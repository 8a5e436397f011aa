import { assert, assertEquals } from "#assert";
import type { SendResult } from "../../src/webhooks/deliveries/sender.ts";
import { DispatcherBed } from "./dispatcher_fixture.ts";

const STEP_MS = 100;
/** Longer than the timeout, so that all of it is seen: new endpoints, first timeouts, and the time after them. */
const LASTS_MS = 17_000;
const TIMEOUT_MS = 15_000;
/** Of an endpoint that answers. */
const ANSWER_MS = 50;

interface Starvation {
  /** The part of what the healthy endpoints were to have that they got. */
  readonly kept: number;
  readonly p99Ms: number;
  /** The attempts that endpoints which hang had at the same time, in the first half and in the last second. */
  readonly hanging: { readonly first: number; readonly last: number };
}

/** Ten events a second for healthy endpoints, while each of those that hang has a backlog. */
async function starved(
  { hanging, healthy }: { readonly hanging: number; readonly healthy: number },
): Promise<Starvation> {
  await using bed = await DispatcherBed.open();
  const live = new Set<string>();
  const add = async (kind: "dead" | "live") => {
    const id = await bed.endpoint({ events: [kind] });
    if (kind === "live") live.add(id);
  };
  // Neither first nor last in the order in which they are found.
  const kinds = Array.from({ length: hanging }, () => "dead" as const);
  for (const kind of kinds.slice(0, 0.8 * hanging)) await add(kind);
  for (let n = 0; n < healthy; n++) await add("live");
  for (const kind of kinds.slice(0.8 * hanging)) await add(kind);
  const idOf = ({ url }: { readonly url: string }) => url.slice(url.lastIndexOf("/") + 1);
  const waits: number[] = [];
  const acceptedAt = new Map<string, number>();
  let out = 0;
  bed.sender.receiver = (request) => {
    const { promise, resolve } = Promise.withResolvers<SendResult>();
    const isLive = live.has(idOf(request));
    if (isLive) {
      const { id } = JSON.parse(new TextDecoder().decode(request.body)).data;
      waits.push(bed.clock.now() - (acceptedAt.get(id) ?? 0));
    } else out++;
    bed.clock.after(isLive ? ANSWER_MS : TIMEOUT_MS, () => {
      if (!isLive) out--;
      resolve(isLive ? { status: 200 } : { errorKind: "timeout", error: "no answer within 15000 ms" });
    });
    return promise;
  };
  // As after a restart: all are new, and something is due of each.
  acceptedAt.set(await bed.event("live"), bed.clock.now());
  for (let n = 0; n < 5; n++) await bed.event("dead");
  const dispatcher = bed.start();
  await bed.settled();
  let first = 0;
  for (let passed = 0; passed < LASTS_MS; passed += STEP_MS) {
    const id = await bed.event("live");
    acceptedAt.set(id, bed.clock.now());
    dispatcher.wake([...live]);
    await bed.settled();
    bed.clock.advance(STEP_MS);
    if (passed < LASTS_MS / 2) first = Math.max(first, out);
  }
  await bed.settled();
  const expected = acceptedAt.size * healthy;
  // What has not come yet waits at least until now.
  const late = Array.from({ length: expected - waits.length }, () => Infinity);
  const sorted = [...waits, ...late].sort((a, b) => a - b);
  const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
  return { kept: waits.length / expected, p99Ms, hanging: { first, last: out } };
}

/** Checks that endpoints which hang leave those that answer nearly all that they are to have, in time. */
export async function leaveRate(of: { readonly hanging: number; readonly healthy: number }): Promise<void> {
  const { kept, p99Ms, ...rest } = await starved(of);
  assert(kept >= 0.95 && p99Ms < 1_000, `kept ${kept}, p99 ${p99Ms} ms, ${Deno.inspect(rest)}`);
  assertEquals([rest.hanging.first <= 438, rest.hanging.last <= 375], [true, true], Deno.inspect(rest));
}

/** Delivers so many events to 50 endpoints: every delivery ends, and none is made twice. */
export async function deliverAll(events: number): Promise<void> {
  const count = 50 * events;
  await using bed = await DispatcherBed.open();
  for (let index = 0; index < 50; index++) await bed.endpoint();
  await Promise.all(Array.from({ length: events }, () => bed.event()));
  const dispatcher = bed.start();
  await bed.sent(count, { deadlineMs: 600_000 });
  const ids = new Set(bed.sender.sent.map(({ headers }) => headers["x-svc-delivery"]));
  assertEquals([ids.size, bed.sender.sent.length, dispatcher.metrics.attempts], [count, count, {
    acknowledged: count,
  }]);
}
