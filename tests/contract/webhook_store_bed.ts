import { assert, assertEquals } from "#assert";
import type { Logger } from "../../src/base/log.ts";
import { QUIET } from "../harness/sqlite_fixture.ts";
import type { AttemptOutcome, DeliveryChange } from "../../src/webhooks/model/delivery.ts";
import type {
  AuditEntry,
  Delivery,
  Endpoint,
  EndpointSecret,
  EventKey,
  NewEvent,
  StoredKey,
  Trigger,
  TriggerSecret,
} from "../../src/webhooks/model/records.ts";
import {
  acceptEvent,
  type NewExecution,
  saveWorkflowVersion,
} from "../../src/webhooks/store/operations/accept.ts";
import { listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { finishAttempt } from "../../src/webhooks/store/operations/delivery_claims.ts";
import { createEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { findEvent } from "../../src/webhooks/store/operations/events.ts";
import {
  type ClaimedExecution,
  claimExecutions,
  dueExecutions,
} from "../../src/webhooks/store/operations/execution_claims.ts";
import type { ClaimedDelivery, ListOptions, Page, WebhookStore } from "../../src/webhooks/store/store.ts";

/** Cases by their names. */
export type StoreCases = Readonly<Record<string, (store: TestStore) => Promise<void>>>;

type Bound<F> = F extends (store: WebhookStore, ...args: infer A) => infer R ? (...args: A) => R : never;

/** A store under test, with what cases do to it, and how to come by another object on the same store. */
export type TestStore =
  & WebhookStore
  & { readonly [Name in keyof typeof HELPERS]: Bound<typeof HELPERS[Name]> }
  & { another(): Promise<TestStore> };

/** A store whose methods include the functions below. */
export function testStore(store: WebhookStore, another: () => Promise<TestStore>): TestStore {
  const helpers = Object.entries(HELPERS).map(([name, helper]) => {
    return [name, (...args: unknown[]) => (helper as (...all: unknown[]) => unknown)(store, ...args)];
  });
  return Object.assign(store, Object.fromEntries(helpers), { another });
}

/** When the cases begin. */
export const NOW = 1_700_000_000_000;
/** Of one day. */
export const DAY = 86_400_000;
/** A name that was not there before. */
export const newId = (): string => crypto.randomUUID();

/** An entry of the audit log. */
export function audit(part: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newId(),
    at: NOW,
    actor: "admin",
    action: "test.done",
    object: "test:1",
    details: {},
    ...part,
  };
}

/** A signing secret. */
export function secret(part: Partial<EndpointSecret> = {}): EndpointSecret {
  const sealed = { keyId: "k1", bytes: crypto.getRandomValues(new Uint8Array(40)) };
  return { id: newId(), sealed, createdAt: NOW, activeAt: NOW, ...part };
}

/** An endpoint with every field that may be absent. */
export function endpoint(part: Partial<Endpoint> = {}): Endpoint {
  return {
    id: newId(),
    url: "https://one.example/hook",
    events: ["*"],
    description: "for tests",
    enabled: true,
    createdAt: NOW,
    updatedAt: NOW,
    headerNames: ["x-one"],
    headers: { keyId: "k1", bytes: new Uint8Array([1, 2, 3]) },
    concurrency: 1_000,
    timeoutMs: 3_000,
    standardWebhooks: true,
    rotationOverlapMs: 60_000,
    onGone: "disable",
    secrets: [secret()],
    ...part,
  };
}

/** A key that is known by its hash. */
export function key(part: Partial<StoredKey> = {}): StoredKey {
  return { id: newId(), hash: newId(), lastFour: "abcd", createdAt: NOW, ...part };
}

/** A key for events. */
export function eventKey(part: Partial<EventKey> = {}): EventKey {
  return { ...key(), name: "agents", kinds: ["agent.*"], ...part };
}

/** A trigger. */
export function trigger(part: Partial<Trigger> = {}): Trigger {
  return {
    id: newId(),
    name: `t-${newId()}`,
    workflow: "order-intake",
    enabled: true,
    requireIdempotencyKey: false,
    onBodyMismatch: "replay",
    onLimitError: "deny",
    createdAt: NOW,
    updatedAt: NOW,
    keys: [key()],
    ...part,
  };
}

/** A secret of a trigger whose calls are signed. */
export function triggerSecret(part: Partial<TriggerSecret> = {}): TriggerSecret {
  const sealed = { keyId: "k1", bytes: crypto.getRandomValues(new Uint8Array(40)) };
  return { id: newId(), sealed, createdAt: NOW, ...part };
}

/** A trigger whose calls are signed. */
export function signedTrigger(part: Partial<Trigger> = {}): Trigger {
  const verify = { scheme: "hmac-sha256", header: "x-sign", encoding: "hex", toleranceSeconds: 300 } as const;
  return trigger({ keys: [], verify, secrets: [triggerSecret()], ...part });
}

/** An event. */
export function event(part: Partial<NewEvent> = {}): NewEvent {
  return { id: newId(), kind: "agent.reply.completed", body: new TextEncoder().encode("{}"), ...part };
}

/** An execution of the version that `saveVersion` saves. */
export function execution(part: Partial<NewExecution> = {}): NewExecution {
  return {
    id: newId(),
    workflow: "order-intake",
    versionId: "v1",
    triggerId: "trigger-1",
    input: `{"n":12345678901234567890}`,
    ...part,
  };
}

/** Saves the version that executions of tests begin with. */
export async function saveVersion(store: WebhookStore): Promise<void> {
  await store.write(saveWorkflowVersion, {
    id: "v1",
    workflow: "order-intake",
    text: "workflow: order-intake\n",
  });
}

/** Writes endpoints. */
export async function addEndpoint(store: WebhookStore, part: Partial<Endpoint> = {}): Promise<Endpoint> {
  const added = endpoint(part);
  await store.write(createEndpoint, added, audit());
  return added;
}

/** Accepts an event. */
export async function addEvent(
  store: WebhookStore,
  part: Partial<NewEvent> = {},
  now = NOW,
): Promise<NewEvent> {
  const added = event(part);
  await store.write(acceptEvent, added, { now });
  return added;
}

/** Claims for endpoints, until a minute later. */
export function claim(
  store: WebhookStore,
  endpoints: readonly { readonly id: string }[],
  { now = NOW, max = 10 }: { readonly now?: number; readonly max?: number } = {},
): Promise<readonly ClaimedDelivery[]> {
  const requests = endpoints.map(({ id }) => ({ endpointId: id, max }));
  return store.claimDeliveries({ now, leaseUntil: now + 60_000, newClaimId: newId, requests });
}

/** Claims executions that are due, until a minute later: those that began first, voided ones last. */
export async function claimRuns(
  store: WebhookStore,
  { now = NOW, max = 10, leaseUntil = now + 60_000, logger = QUIET }: {
    readonly now?: number;
    readonly max?: number;
    readonly leaseUntil?: number;
    readonly logger?: Logger;
  } = {},
): Promise<readonly ClaimedExecution[]> {
  const due = await store.read(dueExecutions, now);
  const claims: ClaimedExecution[] = [];
  for (const stage of ["begun", "new", "voided"] as const) {
    const queues = due.filter((one) => one.stage === stage).toSorted((a, b) =>
      a.expiredClaims - b.expiredClaims
    );
    for (const queue of queues) {
      if (claims.length >= max) break;
      const wanted = { ...queue, max: max - claims.length, maxBytes: 2 ** 30 };
      const options = {
        now,
        leaseUntil,
        newClaimId: newId,
        queues: [wanted],
        maxBytes: 2 ** 30,
        logger,
      };
      claims.push(...await store.write(claimExecutions, options));
    }
  }
  return claims;
}

/** Claims the only delivery that is due. */
export async function claimOne(
  store: WebhookStore,
  endpoint: { readonly id: string },
  now = NOW,
): Promise<ClaimedDelivery> {
  const [claimed, ...more] = await claim(store, [endpoint], { now });
  assert(claimed !== undefined && more.length === 0, "Expected one delivery that is due");
  return claimed;
}

/** Finishes the attempt of a claim. */
export function finish(
  store: WebhookStore,
  claimed: ClaimedDelivery,
  change?: DeliveryChange,
  outcome: AttemptOutcome = { result: "failed", finishedAt: NOW + 5, status: 500, errorKind: "status" },
): Promise<boolean> {
  return store.write(finishAttempt, {
    deliveryId: claimed.delivery.id,
    claimId: claimed.claimId,
    number: claimed.attempt,
    outcome,
    change,
  });
}

/** The change after a failure with a further attempt. */
export function retryAt(dueAt: number, firstFailureAt = NOW): DeliveryChange {
  return { state: "retrying", slot: 1, firstFailureAt, dueAt };
}

/** The change after a success. */
export const ACKNOWLEDGED: DeliveryChange = { state: "acknowledged", slot: 0, finishedAt: NOW + 5 };

/** The change at the end of the schedule. */
export const EXHAUSTED: DeliveryChange = {
  state: "failed",
  slot: 8,
  firstFailureAt: NOW,
  finishedAt: NOW + 5,
  reason: "exhausted",
};

/** The only delivery of an event, with its attempts. */
export async function deliveryOf(store: WebhookStore, eventId: string): Promise<Delivery> {
  const { items } = await store.read(listDeliveries, { limit: 200 });
  const [delivery, ...more] = items.filter((item) => item.eventId === eventId);
  assert(delivery !== undefined && more.length === 0, "Expected one delivery of the event");
  return delivery;
}

/** The parsed body of an event. */
async function bodyOf(
  store: WebhookStore,
  eventId: string,
): Promise<{ readonly event: string; readonly data: Readonly<Record<string, unknown>> }> {
  const event = await store.read(findEvent, eventId);
  return JSON.parse(new TextDecoder().decode(event?.body));
}

/** All pages of a list, read with a small limit. */
export async function allPages<T>(
  list: (options: ListOptions) => Promise<Page<T>>,
  options: Partial<ListOptions> = {},
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: 2, ...options, cursor });
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

/** The actions and objects of the audit log, oldest first, without those of the tests themselves. */
export async function auditLog(store: WebhookStore): Promise<readonly string[]> {
  const entries = await allPages((options) => store.read(listAudit, options), { limit: 200 });
  return entries.reverse().filter(({ action }) => action !== "test.done")
    .map(({ action, object }) => `${action} ${object}`);
}

/** Checks that nothing is due for an endpoint. */
export async function assertNothingDue(
  store: WebhookStore,
  endpoint: { readonly id: string },
  now = NOW,
): Promise<void> {
  assertEquals(await claim(store, [endpoint], { now }), []);
}

const HELPERS = {
  addEndpoint,
  addEvent,
  claim,
  claimOne,
  claimRuns,
  finish,
  deliveryOf,
  bodyOf,
  auditLog,
  saveVersion,
  assertNothingDue,
};
