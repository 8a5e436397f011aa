import { assert, assertEquals } from "#assert";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  audit,
  claim,
  claimRuns,
  event,
  execution,
  finish,
  newId,
  NOW,
  saveVersion,
} from "../contract/webhook_store_bed.ts";
import { handled } from "./handled.ts";
import { openStoreAt } from "./postgres_fixture.ts";
import { acceptEvent, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { releaseClaims, voidClaims } from "../../src/webhooks/store/operations/claims.ts";
import { findDelivery, listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { deleteEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import { commitExecution } from "../../src/webhooks/store/operations/executions.ts";
import type { ClaimedDelivery, WebhookStore } from "../../src/webhooks/store/store.ts";

/** Several stores on one empty database, each as its own process would have it. */
interface Fleet {
  readonly url: string;
  readonly stores: readonly WebhookStore[];
  /** One of the stores; each in turn. */
  of(index: number): WebhookStore;
}

/** Concurrent work of several stores on one database; at the end the rules hold. */
interface FleetCase {
  readonly stores: number;
  /** Work that depends on the number of stores is done so many `times`. */
  run(fleet: Fleet, times: number): Promise<void>;
}

/** Carries out a case on an empty database. */
export async function runFleet(url: string, { stores: size, run }: FleetCase, times: number): Promise<void> {
  const stores = await Promise.all(Array.from({ length: size }, () => openStoreAt(url)));
  const of = (index: number) => {
    const store = stores[index % size];
    assert(store !== undefined);
    return store;
  };
  try {
    await run({ url, stores, of }, times);
    await clearAll(of(0));
    assertEquals((await checkStore(url)).problems, []);
  } finally {
    for (const store of stores) await store.close();
  }
}

/** The cases by name. */
export const FLEET_CASES: Readonly<Record<string, FleetCase>> = {
  "four claimers share out thousands of deliveries, none of them twice": {
    stores: 4,
    run: async ({ stores, of }, times) => {
      const to = await Promise.all(Array.from({ length: 20 }, () => addEndpoint(of(0))));
      await Promise.all(Array.from({ length: 20 * times }, (_, index) => addEvent(of(index))));
      const groups = await Promise.all(stores.map(async (store, index) => {
        const claims: ClaimedDelivery[] = [];
        // Each names the endpoints in its own order.
        const wanted = [...to.slice(index * 5), ...to.slice(0, index * 5)];
        for (;;) {
          const more = await claim(store, wanted, { max: 5 });
          if (more.length === 0) return claims;
          claims.push(...more);
        }
      }));
      const claims = groups.flat();
      const unique = (values: readonly string[]) => new Set(values).size;
      assertEquals([claims.length, unique(claims.map(({ delivery }) => delivery.id))], [
        400 * times,
        400 * times,
      ]);
      assertEquals(unique(claims.map(({ claimId }) => claimId)), 400 * times);
    },
  },
  "an endpoint never has more claims than its concurrency, from all processes": {
    stores: 3,
    run: async ({ stores, of }, times) => {
      const [narrow, wide] = [await addEndpoint(of(0), { concurrency: 4 }), await addEndpoint(of(0))];
      const count = 20 + 6 * times;
      await Promise.all(Array.from({ length: count }, (_, index) => addEvent(of(index))));
      const claimedNow = async (store: WebhookStore) => {
        const { items } = await store.read(listDeliveries, { limit: 200, endpointId: narrow.id });
        return items.filter(({ claimId }) => claimId !== undefined).length;
      };
      // One after the other they get what it may have, and no more.
      const shares = [];
      for (const store of stores) shares.push(await claim(store, [narrow], { max: 3 }));
      assertEquals([...shares.map(({ length }) => length), await claimedNow(of(0))], [3, 1, 0, 4]);
      await of(0).write(releaseClaims, shares.flat().map(({ claimId }) => claimId), NOW);

      let [held, most, done] = [0, 0, 0];
      const seen: number[] = [];
      const worker = async (store: WebhookStore) => {
        while (done < count) {
          const claims = await claim(store, [narrow, wide], { max: 3 });
          const ours = claims.filter(({ delivery }) => delivery.endpointId === narrow.id);
          held += ours.length;
          most = Math.max(most, held);
          seen.push(await claimedNow(store));
          for (const claimed of claims) {
            // Before it is over in the database, so that too many are never counted.
            if (claimed.delivery.endpointId === narrow.id) held--;
            assertEquals(await finish(store, claimed, ACKNOWLEDGED), true);
            if (claimed.delivery.endpointId === narrow.id) done++;
          }
        }
      };
      await Promise.all([...stores, ...stores].map(worker));
      assert(Math.max(most, ...seen) <= 4, `${Math.max(most, ...seen)} at the same time`);
      const [first] = await claim(of(0), [wide], { max: 1 });
      if (first !== undefined) await of(0).write(releaseClaims, [first.claimId], NOW);
    },
  },
  "of an attempt's end and the end of its lease one wins": {
    stores: 3,
    run: async ({ of }) => {
      const to = await addEndpoint(of(0));
      await Promise.all(Array.from({ length: 120 }, (_, index) => addEvent(of(index))));
      const claims = await claim(of(0), [to], { max: 120 });
      const outcome = { result: "acknowledged", finishedAt: NOW + 5, status: 200 } as const;
      const end = (claimed: ClaimedDelivery, index: number) =>
        finish(of(index), claimed, ACKNOWLEDGED, outcome);
      // Some come for sure before the leases end, some after that, and the others at the same time.
      const before = await Promise.all(claims.slice(0, 20).map(end));
      const voiding = handled(of(1).write(voidClaims, { now: NOW + 60_001, which: "expired" }));
      const racing = handled(Promise.all(claims.slice(20, 80).map(end)));
      const voided = await voiding;
      const finished = [...before, ...await racing, ...await Promise.all(claims.slice(80).map(end))];
      const won = finished.filter((isHeld) => isHeld).length;
      assertEquals([won + voided, won > 0, voided > 0], [120, true, true]);
      for (const [index, { delivery: { id } }] of claims.entries()) {
        const { delivery, attempts } = await of(1).read(findDelivery, id) ?? {};
        const expected = finished[index] === true ? "acknowledged acknowledged" : "attempting interrupted";
        assertEquals(`${delivery?.state} ${attempts?.map(({ result }) => result)}`, expected);
      }
    },
  },
  "an endpoint that goes while events come leaves nothing open": {
    stores: 3,
    run: async ({ of }) => {
      const [gone, kept] = [await addEndpoint(of(0)), await addEndpoint(of(0))];
      const isGone = Promise.withResolvers<void>();
      const events = await Promise.all(Array.from({ length: 300 }, async (_, index) => {
        if (index === 90) {
          const options = { now: NOW + 1, audit: audit(), newId };
          assertEquals(await of(1).write(deleteEndpoint, gone.id, options), true);
          isGone.resolve();
        }
        // Some come for sure when it is gone, some before.
        if (index > 250) await isGone.promise;
        const answer = await of(index).write(acceptEvent, event(), { now: NOW });
        return answer.kind === "new" ? answer.value.endpointIds : [];
      }));
      const reached = events.filter((ids) => ids.includes(gone.id)).length;
      assertEquals(events.every((ids) => ids.includes(kept.id)), true);
      assertEquals(events.slice(251).flat().includes(gone.id), false);
      await clearAll(of(2));
      const { deliveries } = await of(0).metrics(NOW);
      assertEquals(deliveries, { attempting: 300, retrying: 0, acknowledged: 0, failed: reached });
      assertEquals((await claim(of(0), [gone, kept], { max: 1_000 })).length, 300);
    },
  },
  "of a payload that is erased while others claim nothing is claimed after": {
    stores: 3,
    run: async ({ stores, of }) => {
      const to = await Promise.all(Array.from({ length: 30 }, () => addEndpoint(of(0))));
      const events = await Promise.all(Array.from({ length: 20 }, (_, index) => addEvent(of(index))));
      const erased = events.slice(0, 10);
      const claiming = handled(Promise.all(stores.map(async (store) => {
        const claims: ClaimedDelivery[] = [];
        for (let round = 0; round < 25; round++) claims.push(...await claim(store, to, { max: 1 }));
        return claims;
      })));
      const options = { now: NOW + 1, newId };
      const erasing = erased.map(({ id }, index) =>
        of(index).write(erasePayload, id, { ...options, audit: audit() })
      );
      assertEquals((await Promise.all(erasing)).every((isThere) => isThere), true);
      const claims = (await claiming).flat();
      await clearAll(of(0));
      claims.push(...await claim(of(1), to, { max: 100 }));
      const ids = new Set(erased.map(({ id }) => id));
      for (const claimed of claims) {
        const isHeld = await finish(of(2), claimed, ACKNOWLEDGED);
        assertEquals(isHeld, !ids.has(claimed.delivery.eventId));
      }
      assertEquals((await of(0).metrics(NOW)).deliveries, {
        attempting: 0,
        retrying: 0,
        acknowledged: 300,
        failed: 300,
      });
    },
  },
  "what is answered while the payload is erased is erased, too": {
    stores: 3,
    run: async ({ of }) => {
      const to = await addEndpoint(of(0));
      const events = await Promise.all(Array.from({ length: 60 }, (_, index) => addEvent(of(index))));
      const claims = await claim(of(0), [to], { max: 60 });
      const outcome = {
        result: "acknowledged",
        finishedAt: NOW,
        status: 200,
        response: "the payload",
      } as const;
      const ends = await Promise.all(claims.map(async (claimed, index) => {
        const erase = () =>
          of(index + 1).write(erasePayload, claimed.delivery.eventId, { now: NOW, newId, audit: audit() });
        const end = () => finish(of(index), claimed, ACKNOWLEDGED, outcome);
        // Some for sure before the other, some for sure after it.
        if (index % 3 === 0) await erase();
        const isFirst = index % 3 === 1;
        const ended = isFirst ? await end() : end();
        const [isHeld] = await Promise.all([ended, index % 3 === 0 ? undefined : erase()]);
        return isHeld;
      }));
      assertEquals([events.length, new Set(ends)], [60, new Set([true, false])]);
      for (const { delivery: { id } } of claims) {
        const { attempts } = await of(0).read(findDelivery, id) ?? {};
        assertEquals(attempts?.map(({ response }) => response), [undefined]);
      }
    },
  },
  "of suspects one is claimed at a time, by any process": {
    stores: 3,
    run: async ({ stores, of }) => {
      await saveVersion(of(0));
      for (let index = 0; index < 6; index++) await of(0).write(acceptExecution, execution(), { now: NOW });
      const take = (store: WebhookStore, max: number) => claimRuns(store, { max });
      for (let expiredClaims = 0; expiredClaims < 3; expiredClaims++) {
        assertEquals((await take(of(expiredClaims), 6)).length, 6);
        await of(expiredClaims + 1).write(voidClaims, { now: NOW, which: "all" });
      }
      const ended = new Set<string>();
      while (ended.size < 6) {
        const [claimed, ...more] = (await Promise.all([...stores, ...stores].map((store) => take(store, 2))))
          .flat();
        assertEquals([claimed?.queue.expiredClaims, more], [3, []]);
        assert(claimed !== undefined);
        ended.add(claimed.execution.id);
        const change = { status: "succeeded", stepAttempts: 0, finishedAt: NOW } as const;
        const { execution: { id: executionId }, claimId } = claimed;
        const commit = { executionId, claimId, now: NOW, change, keepClaim: false };
        assertEquals(await of(ended.size).write(commitExecution, commit), { cancelRequested: false });
      }
    },
  },
};

async function clearAll(store: WebhookStore): Promise<void> {
  while (await store.clearRemoved({ now: NOW + 9, newId }));
}
