import { assert, assertEquals } from "#assert";
import { DispatcherBed } from "./dispatcher_fixture.ts";
import { seededRandom } from "./seeded_random.ts";
import { findDelivery, listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { StoreError, type WebhookStore } from "../../src/webhooks/store/store.ts";

const EVENTS = 15;
const ENDPOINTS = 4;
const STEP_MS = 250;
const FAULTY_STEPS = 100;
/** After the store is healthy, within a second. */
const PROMPT_STEPS = 4;
/** More than all leases and retries take once the store and the receivers are well. */
const WELL_STEPS = 4_000;

/** A line to the store on which operations fail: before they are carried out, or their answer is lost. */
function faultyLine(store: WebhookStore, random: () => number) {
  const line = { isFaulty: true, store };
  line.store = new Proxy(store, {
    get(target, name) {
      const operation = Reflect.get(target, name);
      if (typeof operation !== "function") return operation;
      return async (...given: unknown[]) => {
        const chance = line.isFaulty ? random() : 1;
        if (chance < 0.2) throw new StoreError("busy", "Cannot use the store: it is locked");
        const answer = await Reflect.apply(operation, target, given);
        if (chance < 0.4) throw new StoreError("busy", "Cannot use the store: the answer is lost");
        return answer;
      };
    },
  });
  return line;
}

/** Delivers while the store fails at random: no delivery is lost, and none is repeated unrecorded. */
export async function deliverThroughFaults(seed: number): Promise<void> {
  const random = seededRandom(seed);
  await using bed = await DispatcherBed.open();
  for (let n = 0; n < ENDPOINTS; n++) await bed.endpoint({ concurrency: 2 });
  const lines = [faultyLine(bed.store, random), faultyLine(bed.store, random)];
  const sent = new Map<string, number>();
  const out = new Set<string>();
  const doubled: string[] = [];
  let isWell = false;
  bed.sender.receiver = ({ headers }) => {
    const id = headers["x-svc-delivery"] ?? "";
    sent.set(id, (sent.get(id) ?? 0) + 1);
    if (out.has(id)) doubled.push(id);
    out.add(id);
    const { promise, resolve } = Promise.withResolvers<void>();
    bed.clock.after(isWell ? 0 : random() * 2_000, resolve);
    const status = isWell || random() < 0.7 ? 200 : 500;
    return promise.then(() => {
      out.delete(id);
      return status === 200
        ? { status }
        : { status, errorKind: "status", error: "the receiver responded with 500" };
    });
  };
  const dispatchers = lines.map(({ store }) => bed.start({ store, maxInFlight: 6 }));
  for (let step = 0; step < FAULTY_STEPS; step++) {
    if (step < EVENTS) await bed.event();
    await bed.settled();
    bed.clock.advance(STEP_MS);
  }
  for (const line of lines) line.isFaulty = false;
  isWell = true;
  const all = async () => (await bed.store.read(listDeliveries, { limit: 200 })).items;
  for (let step = 0; step < PROMPT_STEPS; step++) {
    await bed.settled();
    bed.clock.advance(STEP_MS);
  }
  await bed.settled();
  const claimed = (await all()).filter(({ claimId }) => claimId !== undefined).length;
  const running = dispatchers.reduce((sum, dispatcher) => sum + dispatcher.running, 0);
  assertEquals(claimed, running, "a claim that is not worked on has gone back, not by its lease");
  const isOpen = async () =>
    (await all()).some(({ state, claimId }) => state !== "acknowledged" || claimId !== undefined);
  for (let step = 0; step < WELL_STEPS && await isOpen(); step++) {
    bed.clock.advance(STEP_MS);
    await bed.settled();
  }
  const items = await all();
  assertEquals(items.map(({ state }) => state), Array(EVENTS * ENDPOINTS).fill("acknowledged"));
  assertEquals(doubled, [], "none is out twice at the same time");
  for (const { id } of items) {
    const { attempts = [] } = await bed.store.read(findDelivery, id) ?? {};
    const results = attempts.map(({ result }) => result);
    const shown = `${id}: sent ${sent.get(id)} times, ${results.join(", ")}`;
    assertEquals(attempts.map(({ number }) => number), attempts.map((_, index) => index + 1), shown);
    const [least, most] = [results.filter((result) => result !== "interrupted").length, results.length];
    assert((sent.get(id) ?? 0) >= least && (sent.get(id) ?? 0) <= most, shown);
    assertEquals([results.at(-1), results.includes(undefined)], ["acknowledged", false], shown);
  }
}
