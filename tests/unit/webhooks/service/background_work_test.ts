import { assertEquals } from "#assert";
import { eventually, until } from "../../../harness/until.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { findDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { dueEndpoints } from "../../../../src/webhooks/store/operations/delivery_claims.ts";
import { voidClaims } from "../../../../src/webhooks/store/operations/claims.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import type { ClaimedDelivery } from "../../../../src/webhooks/store/store.ts";
import {
  listExecutions,
  renewExecutionClaims,
} from "../../../../src/webhooks/store/operations/executions.ts";

const DAY_MS = 86_400_000;
const RETENTION_MS = 3_600_000;

/** A lock that a test hands out. */
class Lock {
  isFree = true;
  isSole = true;
  isKept = true;
  taken = 0;
  released = 0;

  readonly take = () => {
    if (!this.isFree) return undefined;
    this.taken++;
    return { isSole: this.isSole, keep: () => this.isKept, release: () => void this.released++ };
  };
}

/** Claims a delivery as another process does. */
async function claim({ clock, store }: WebhookBed, leaseMs: number): Promise<ClaimedDelivery | undefined> {
  const now = clock.now();
  const [endpoint] = await store.read(dueEndpoints, now);
  const terms = { now, leaseUntil: now + leaseMs, newClaimId: () => crypto.randomUUID() };
  const requests = [{ endpointId: endpoint?.id ?? "", max: 1 }];
  const [claimed] = await store.claimDeliveries({ ...terms, requests });
  return claimed;
}

Deno.test("background work: it begins once the lock is had, and gives it back", async () => {
  const lock = new Lock();
  lock.isFree = false;
  const bed = await WebhookBed.open({ parts: { takeLock: lock.take } });
  bed.service.start();
  bed.clock.advance(1_000);
  assertEquals([bed.service.isWorking, lock.taken], [false, 0]);
  lock.isFree = true;
  await until("the work to begin", () => {
    bed.clock.advance(250);
    return bed.service.isWorking;
  });
  assertEquals([lock.taken, lock.released], [1, 0]);
  await bed[Symbol.asyncDispose]();
  assertEquals([lock.taken, lock.released], [1, 1]);
});

Deno.test("background work: that another process holds the lock is reported once", async () => {
  const lock = new Lock();
  const told: string[] = [];
  const onLockLost = (state: string) => void told.push(state);
  await using bed = await WebhookBed.open({ parts: { takeLock: lock.take, onLockLost } });
  bed.service.start();
  await until("the work to begin", () => bed.service.isWorking);
  bed.clock.advance(1_000);
  lock.isKept = false;
  await until("the loss", () => {
    bed.clock.advance(250);
    return told.length > 0;
  });
  for (let round = 0; round < 4; round++) {
    bed.clock.advance(1_000);
    await Promise.resolve();
  }
  assertEquals(told, ["Cannot keep the lock of the store: another process holds it"]);
});

Deno.test("background work: claims of the previous holder of the lock are void", async () => {
  const lock = new Lock();
  await using bed = await WebhookBed.open({
    parts: { takeLock: lock.take, sender: { send: () => Promise.resolve({ status: 200 }) } },
  });
  await bed.call("POST", "/endpoints", { url: "https://example.com/" });
  const { body: { id } } = await bed.post({ event: "a", data: {} });
  assertEquals((await claim(bed, DAY_MS))?.delivery.eventId, id);
  bed.service.start();
  const state = async () => (await bed.call("GET", "/deliveries")).body.items[0]?.state;
  await until("the delivery", async () => await state() === "acknowledged");
});

Deno.test("background work: where others work too, only claims whose lease is over are void", async () => {
  const lock = new Lock();
  lock.isSole = false;
  const sent: string[] = [];
  await using bed = await WebhookBed.open({
    parts: {
      takeLock: lock.take,
      sender: {
        send: ({ headers }) => {
          sent.push(headers["x-svc-delivery"] ?? "");
          return Promise.resolve({ status: 200 });
        },
      },
    },
  });
  await bed.call("POST", "/endpoints", { url: "https://example.com/" });
  await bed.post({ event: "a", data: {} });
  await bed.post({ event: "a", data: {} });
  const [gone, held] = [await claim(bed, 1_000), await claim(bed, DAY_MS)].map((one) => one?.delivery.id);
  bed.clock.advance(2_000);
  bed.service.start();
  const state = async (id = "") => (await bed.store.read(findDelivery, id))?.delivery.state;
  await until("the delivery", async () => await state(gone) === "acknowledged");
  await eventually([[gone], "attempting"], async () => [sent, await state(held) ?? ""]);
  assertEquals(
    bed.log.some((line) => line === "Delivering and running workflows { isStoreShared: true }"),
    true,
  );
});

Deno.test("background work: what is too old is removed at the start and every minute", async () => {
  const lock = new Lock();
  await using bed = await WebhookBed.open({ parts: { takeLock: lock.take, retentionMs: RETENTION_MS } });
  const events = async () => (await bed.call("GET", "/events")).body.items.length;
  await bed.post({ event: "a", data: {} });
  bed.clock.advance(RETENTION_MS + 1);
  bed.service.start();
  await until("the first removal", async () => await events() === 0);
  await bed.post({ event: "a", data: {} });
  bed.clock.advance(RETENTION_MS - 60_000);
  assertEquals(await events(), 1);
  await until("the second removal", async () => {
    bed.clock.advance(60_000);
    return await events() === 0;
  });
});

Deno.test("background work: a store that cannot void claims yet is asked again", async () => {
  const lock = new Lock();
  let failures = 2;
  await using bed = await WebhookBed.open({
    parts: { takeLock: lock.take },
    store: (store) =>
      storeWith(store, [
        instead(voidClaims, (call) => failures-- > 0 ? Promise.reject(new Error("busy")) : call()),
      ]),
  });
  bed.service.start();
  await until("the work to begin", () => {
    bed.clock.advance(250);
    return bed.service.isWorking;
  });
  assertEquals(lock.taken, 1);
});

Deno.test("background work: that it cannot begin yet is said once in ten seconds", async () => {
  await using bed = await WebhookBed.open({
    parts: {
      takeLock: () => {
        throw new Error("locked");
      },
    },
  });
  bed.service.start();
  for (let passed = 0; passed < 21_000; passed += 250) {
    bed.clock.advance(250);
    await Promise.resolve();
  }
  assertEquals(bed.log.filter((line) => line.startsWith("Cannot take over")).length, 3);
});

Deno.test("background work: an event asks for deliveries to the endpoints that it goes to", async () => {
  const lock = new Lock();
  const wanted: string[] = [];
  let looks = 0;
  await using bed = await WebhookBed.open({
    parts: { takeLock: lock.take, sender: { send: () => Promise.resolve({ status: 200 }) } },
    store(store) {
      const look = instead(dueEndpoints, (call) => {
        looks++;
        return call();
      });
      return storeWith(store, [look], {
        claimDeliveries: (options) => {
          wanted.push(...options.requests.map(({ endpointId }) => endpointId));
          return store.claimDeliveries(options);
        },
      });
    },
  });
  const { body: { id } } = await bed.call("POST", "/endpoints", {
    url: "https://example.com/a",
    events: ["a"],
  });
  await bed.call("POST", "/endpoints", { url: "https://example.com/b", events: ["b"] });
  bed.service.start();
  await until("the first look", () => looks > 0);
  await bed.post({ event: "a", data: {} });
  const state = async () => (await bed.call("GET", "/deliveries")).body.items[0]?.state;
  await until("the delivery", async () => await state() === "acknowledged");
  assertEquals([new Set(wanted), looks], [new Set([id]), 1], "no look reads all endpoints for it");
});

Deno.test("background work: what a removal has left is gone on with, also of another process", async () => {
  const lock = new Lock();
  await using bed = await WebhookBed.open({ parts: { takeLock: lock.take } });
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: "https://example.com/a" });
  await Promise.all(Array.from({ length: 1_200 }, () => bed.post({ event: "a", data: {} })));
  assertEquals((await bed.call("DELETE", `/endpoints/${id}`)).status, 204);
  const open = async () => (await bed.store.metrics(0)).deliveries.attempting;
  assertEquals(await open(), 700);
  bed.service.start();
  await until("all to have failed", async () => await open() === 0);
  await eventually(1_200, async () => (await bed.store.metrics(0)).deliveries.failed);
});

Deno.test("background work: claims of executions are renewed before any that ended are taken back", async () => {
  const lock = new Lock();
  const calls: string[] = [];
  const gate = Promise.withResolvers<void>();
  await using bed = await WebhookBed.open({
    parts: {
      takeLock: lock.take,
      atStep: async (point) => {
        if (point === "claimed") await gate.promise;
      },
    },
    store: (store) =>
      storeWith(store, [
        instead(renewExecutionClaims, (call) => {
          calls.push("renewed");
          return call();
        }),
        instead(voidClaims, (call, options) => {
          calls.push(options.which);
          return call();
        }),
      ]),
  });
  const { key } = await bed.trigger();
  await bed.start(key, {});
  bed.service.start();
  const isClaimed = async () =>
    (await bed.store.read(listExecutions, { limit: 1 })).items[0]?.claimId !== undefined;
  await until("the claim", isClaimed);
  await until("the first look", () => calls.includes("expired"));
  calls.length = 0;
  bed.clock.advance(5_000);
  await until("the next look", () => calls.includes("expired"));
  assertEquals(calls, ["renewed", "expired"]);
  gate.resolve();
});
