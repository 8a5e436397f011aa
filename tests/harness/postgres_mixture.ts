import { assert, assertEquals } from "#assert";
import type { Endpoint } from "../../src/webhooks/model/records.ts";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import {
  ACKNOWLEDGED,
  audit,
  claim,
  claimRuns,
  DAY,
  endpoint,
  event,
  execution,
  EXHAUSTED,
  finish,
  newId,
  NOW,
  retryAt,
  saveVersion,
  secret,
} from "../contract/webhook_store_bed.ts";
import { seededRandom } from "./seeded_random.ts";
import { openStoreAt } from "./postgres_fixture.ts";
import { acceptEvent, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { clockSetBack, releaseClaims, voidClaims } from "../../src/webhooks/store/operations/claims.ts";
import { recoverDeliveries, resendDelivery } from "../../src/webhooks/store/operations/deliveries.ts";
import { failPaused, renewClaims } from "../../src/webhooks/store/operations/delivery_claims.ts";
import {
  addEndpointSecret,
  createEndpoint,
  deleteEndpoint,
  editEndpoint,
} from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import type { ClaimedExecution } from "../../src/webhooks/store/operations/execution_claims.ts";
import {
  cancelExecution,
  commitExecution,
  renewExecutionClaims,
} from "../../src/webhooks/store/operations/executions.ts";
import { removeFinished } from "../../src/webhooks/store/operations/retention.ts";
import type { ClaimedDelivery, WebhookStore } from "../../src/webhooks/store/store.ts";

const STORES = 4;
const WORKERS = 16;

/** Has several stores on this empty database do a mixture of everything at the same time: the rules hold, and none of it fails. */
export async function mixEverything(
  url: string,
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
): Promise<void> {
  const stores = await Promise.all(Array.from({ length: STORES }, () => openStoreAt(url)));
  try {
    const [store] = stores;
    assert(store !== undefined);
    await saveVersion(store);
    await keepVersion(store);
    const mixture = new Mixture(seededRandom(seed));
    const worker = async (index: number) => {
      for (let round = 0; round < rounds; round++) {
        await mixture.step(stores[(index + round) % STORES] ?? store);
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, (_, index) => worker(index)));
    assertEquals(mixture.failures, []);
    while (await store.clearRemoved({ now: NOW, newId }));
    assertEquals((await checkStore(url)).problems, []);
    // Enough has come to an end for this to say something.
    assertEquals([mixture.finished > rounds * 5 / 6, mixture.committed > rounds / 3], [true, true]);
  } finally {
    for (const store of stores) await store.close();
  }
}

/** An execution that is always under way, so that the text of the workflow stays. */
async function keepVersion(store: WebhookStore): Promise<void> {
  await store.write(acceptExecution, execution(), { now: NOW });
  await claimRuns(store, { leaseUntil: NOW + 900 * DAY, max: 1 });
}

/** Does one thing after the other, by chance. */
class Mixture {
  readonly failures: unknown[] = [];
  finished = 0;
  committed = 0;
  readonly #random: () => number;
  readonly #steps: readonly ((store: WebhookStore) => Promise<unknown>)[];
  readonly #endpoints: Endpoint[] = [];
  readonly #events: string[] = [];
  readonly #executions: string[] = [];
  readonly #deliveries: string[] = [];
  readonly #claims: ClaimedDelivery[] = [];
  readonly #runs: ClaimedExecution[] = [];

  constructor(random: () => number) {
    this.#random = random;
    const often = [this.#accept, this.#claim, this.#claim, this.#finish, this.#finish, this.#finish];
    const executions = [this.#start, this.#start, this.#claimExecutions, this.#commit, this.#commit];
    const rare = [this.#changeEndpoints, this.#remove, this.#byHand, this.#chore];
    this.#steps = [...often, ...often, ...executions, ...rare];
  }

  async step(store: WebhookStore): Promise<void> {
    try {
      await this.#one(this.#steps)?.call(this, store);
    } catch (error) {
      this.failures.push(error);
    }
  }

  async #accept(store: WebhookStore) {
    const added = event();
    this.#events.push(added.id);
    const key = `k${this.#below(5)}`;
    const idempotency = this.#below(3) === 0 ? { scope: "admin", key, bodyHash: "h" } : undefined;
    await store.write(acceptEvent, added, { now: this.#time(), idempotency });
  }

  async #claim(store: WebhookStore) {
    const claims = await claim(store, this.#endpoints, { now: this.#time(), max: 3 });
    this.#deliveries.push(...claims.map(({ delivery }) => delivery.id));
    this.#claims.push(...claims);
  }

  async #finish(store: WebhookStore) {
    const claimed = this.#take(this.#claims);
    if (claimed === undefined) return;
    if (this.#below(9) === 0) return void await store.write(releaseClaims, [claimed.claimId], this.#time());
    const finishedAt = this.#time();
    const ends = [{ ...ACKNOWLEDGED, finishedAt }, { ...EXHAUSTED, finishedAt }, retryAt(this.#time())];
    if (await finish(store, claimed, claimed.manual ? undefined : this.#one(ends))) this.finished++;
  }

  async #start(store: WebhookStore) {
    const added = execution();
    this.#executions.push(added.id);
    const key = `k${this.#below(5)}`;
    const idempotency = this.#below(3) === 0 ? { scope: "trigger:1", key, bodyHash: "h" } : undefined;
    await store.write(acceptExecution, added, { now: this.#time(), idempotency });
  }

  async #claimExecutions(store: WebhookStore) {
    const now = this.#time();
    this.#runs.push(...await claimRuns(store, { now, max: 4 }));
  }

  async #commit(store: WebhookStore) {
    const claimed = this.#take(this.#runs);
    if (claimed === undefined) return;
    const { execution: { id: executionId }, claimId } = claimed;
    const now = this.#time();
    const status = this.#one(["running", "succeeded", "failed", "cancelled"] as const) ?? "running";
    const end = status === "running" ? { startedAt: now, dueAt: now } : { finishedAt: now };
    const answer = await store.write(commitExecution, {
      executionId,
      claimId,
      now,
      keepClaim: this.#below(5) === 0,
      change: { status, stepAttempts: 0, ...end },
      event: status === "running" ? undefined : event({ kind: "workflow.execution.completed" }),
    });
    if (answer !== undefined) this.committed++;
  }

  async #changeEndpoints(store: WebhookStore) {
    const added = endpoint({ concurrency: 6 });
    if (this.#endpoints.length < 6) {
      await store.write(createEndpoint, added, audit());
      this.#endpoints.push(added);
    }
    const { id } = this.#one(this.#endpoints) ?? added;
    const now = this.#time();
    await store.write(editEndpoint, id, { enabled: this.#below(3) > 0 }, { now, audit: audit() });
    await store.write(addEndpointSecret, id, secret({ createdAt: now, activeAt: now }), audit());
  }

  async #remove(store: WebhookStore) {
    const options = { now: this.#time(), newId };
    const id = this.#below(3) === 0 ? this.#take(this.#events) : undefined;
    if (id !== undefined) await store.write(erasePayload, id, { ...options, audit: audit() });
    if (this.#below(9) > 0 || this.#endpoints.length < 5) return;
    const gone = this.#take(this.#endpoints);
    if (gone !== undefined) await store.write(deleteEndpoint, gone.id, { ...options, audit: audit() });
  }

  async #byHand(store: WebhookStore) {
    const [id, now] = [this.#one(this.#deliveries), this.#time()];
    if (id !== undefined) await store.write(resendDelivery, id, { now, audit: audit() });
    const endpointId = this.#one(this.#endpoints)?.id ?? newId();
    const window = { endpointId, since: NOW, until: NOW + 9 * DAY, max: 9 };
    await store.write(recoverDeliveries, { ...window, now, dryRun: false, audit: audit() });
    await store.write(cancelExecution, this.#one(this.#executions) ?? newId(), now);
  }

  async #chore(store: WebhookStore) {
    const now = this.#time();
    const held = this.#one(this.#claims)?.claimId ?? newId();
    await store.write(renewClaims, [held], now + 60_000);
    await store.write(renewExecutionClaims, [this.#one(this.#runs)?.claimId ?? newId()], now + 60_000);
    await store.write(voidClaims, { now, which: "expired" });
    await store.write(failPaused, { now: now + DAY, newId });
    await store.write(clockSetBack, now);
    await store.write(removeFinished, { before: NOW + 20_000, now, max: 5 });
    await store.clearRemoved({ now, newId, max: 3 });
  }

  /** The clocks of the stores are not in step. */
  #time(): number {
    return NOW + this.#below(70) * 1_000;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #one<T>(values: readonly T[]): T | undefined {
    return values[this.#below(values.length)];
  }

  #take<T>(values: T[]): T | undefined {
    return values.splice(this.#below(values.length), 1)[0];
  }
}
