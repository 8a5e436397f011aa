import { join } from "node:path";
import type { AttemptReport } from "../../src/webhooks/deliveries/metrics.ts";
import { Dispatcher, type DispatcherOptions } from "../../src/webhooks/deliveries/dispatcher.ts";
import { eventBody } from "../../src/webhooks/model/event.ts";
import type { Attempt, AuditEntry, Delivery, Endpoint } from "../../src/webhooks/model/records.ts";
import type { DeliverySender, OutgoingDelivery, SendResult } from "../../src/webhooks/deliveries/sender.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import { RecordedLogger } from "./recorded_logger.ts";
import { FakeClock } from "./fake_clock.ts";
import { QUIET, UNSYNCED } from "./sqlite_fixture.ts";
import { until, type UntilOptions } from "./until.ts";
import { acceptEvent } from "../../src/webhooks/store/operations/accept.ts";
import { findDelivery, listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { createEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { findEvent } from "../../src/webhooks/store/operations/events.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

/** A receiver's reaction to a request; a promise keeps it waiting. */
type Receiver = (request: OutgoingDelivery) => SendResult | Promise<SendResult>;

/** Stands for the network: asks the receiver of the test, and keeps what was sent. */
export class SenderDouble implements DeliverySender {
  readonly sent: OutgoingDelivery[] = [];
  receiver: Receiver = () => ({ status: 200 });
  running = 0;
  mostRunning = 0;

  /** Has the receiver keep its requests waiting until this is called, and answer them with 200 then. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.receiver = () => promise.then(() => ({ status: 200 }));
    return resolve;
  }

  async send(request: OutgoingDelivery, { signal }: { signal: AbortSignal }): Promise<SendResult> {
    this.sent.push(request);
    this.mostRunning = Math.max(this.mostRunning, ++this.running);
    const stopped = Promise.withResolvers<SendResult>();
    const onAbort = () => stopped.resolve({ errorKind: "interrupted", error: "given up" });
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([this.receiver(request), stopped.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.running--;
    }
  }
}

/** The recorded result of a receiver that returns 500. */
export const SERVER_ERROR: SendResult = {
  status: 500,
  errorKind: "status",
  error: "the receiver responded with 500",
};

/** The recorded result of a receiver that returns 404. */
export const NOT_FOUND: SendResult = {
  status: 404,
  errorKind: "status",
  error: "the receiver responded with 404",
};

/** Opens what was "sealed" as plain text. */
const PLAIN_BOX = {
  unseal: ({ bytes }: { readonly bytes: Uint8Array }) => Promise.resolve(new TextDecoder().decode(bytes)),
};

/** The signing secret of every endpoint. */
export const SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiBkaXNwYXRjaGluZw==";

/** Cryptography that is under way: it is done on other threads, so no number of turns waits for it. */
const encrypting = new Set<Promise<unknown>>();
const subtle = crypto.subtle as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>;
for (const name of ["importKey", "sign", "encrypt", "decrypt"]) {
  const original = subtle[name]?.bind(subtle);
  subtle[name] = async (...args) => {
    const made = original?.(...args);
    if (made === undefined) throw new Error(`Cannot find crypto.subtle.${name}`);
    encrypting.add(made);
    return await made.finally(() => encrypting.delete(made));
  };
}

/** Waits for cryptography that is under way; answers whether there was any. */
export async function encryptionEnded(): Promise<boolean> {
  if (encrypting.size === 0) return false;
  await Promise.allSettled(encrypting);
  return true;
}

/** A store in its own folder, a clock that stands still, and dispatchers on them. */
export class DispatcherBed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly sender = new SenderDouble();
  readonly log = new RecordedLogger();
  readonly reports: AttemptReport[] = [];
  readonly store: WebhookStore;
  readonly path: string;
  random = 0.5;
  readonly #folder: string;
  readonly #dispatchers: Dispatcher[] = [];

  private constructor(folder: string, store: WebhookStore, path: string) {
    this.#folder = folder;
    this.store = store;
    this.path = path;
  }

  static async open(): Promise<DispatcherBed> {
    const folder = await Deno.makeTempDir({ prefix: "weir_dispatcher_" });
    const path = join(folder, "weir.db");
    const store = await openSqliteStore({ path, logger: QUIET, clock: new FakeClock(), ...UNSYNCED });
    return new DispatcherBed(folder, store, path);
  }

  /** One with an endpoint, and an event for it. */
  static async withEvent(endpoint: Partial<Endpoint> = {}): Promise<DispatcherBed> {
    const bed = await DispatcherBed.open();
    await bed.endpoint(endpoint);
    await bed.event();
    return bed;
  }

  /** Makes a dispatcher and starts it. */
  start(options: Partial<DispatcherOptions> = {}): Dispatcher {
    const dispatcher = new Dispatcher({
      store: this.store,
      sender: this.sender,
      secretBox: PLAIN_BOX,
      clock: this.clock,
      random: () => this.random,
      newId: () => crypto.randomUUID(),
      logger: this.log,
      maxInFlight: 500,
      timeoutMs: 15_000,
      version: "0.0.0",
      onAttempt: (report) => this.reports.push(report),
      ...options,
    });
    this.#dispatchers.push(dispatcher);
    dispatcher.start();
    return dispatcher;
  }

  /** Adds an endpoint for every kind of event; answers its id. */
  async endpoint(given: Partial<Endpoint> = {}): Promise<string> {
    const id = given.id ?? crypto.randomUUID();
    const now = this.clock.now();
    const sealed = { keyId: "k", bytes: new TextEncoder().encode(SECRET) };
    await this.store.write(createEndpoint, {
      id,
      url: `https://receiver.example/${id}`,
      events: ["*"],
      description: "",
      enabled: true,
      createdAt: now,
      updatedAt: now,
      headerNames: [],
      concurrency: 4,
      standardWebhooks: false,
      secrets: [{ id: crypto.randomUUID(), sealed, createdAt: now, activeAt: now }],
      ...given,
    }, this.entry("endpoint.created"));
    return id;
  }

  /** Takes in an event; answers its id. */
  async event(kind = "agent.reply.completed"): Promise<string> {
    const id = crypto.randomUUID();
    await this.store.write(acceptEvent, { id, kind, body: eventBody(kind, `{"id":"${id}"}`) }, {
      now: this.clock.now(),
    });
    return id;
  }

  /** An entry of the audit log. */
  entry(action: string): AuditEntry {
    return {
      id: crypto.randomUUID(),
      at: this.clock.now(),
      actor: "admin",
      action,
      object: "test",
      details: {},
    };
  }

  /** The only delivery there is, with its attempts. */
  async only(): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] }> {
    const { items } = await this.store.read(listDeliveries, { limit: 2 });
    const [one, other] = items;
    if (one === undefined || other !== undefined) {
      throw new Error(`Cannot find one delivery: ${items.length}`);
    }
    const found = await this.store.read(findDelivery, one.id);
    if (found === undefined) throw new Error("Cannot find the delivery");
    return found;
  }

  /** Moves time on in small steps, as it passes, until this many requests were sent; then lets all be written. */
  async advanceTo(sent: number, limitMs: number): Promise<void> {
    for (let passed = 0; this.sender.sent.length < sent && passed < limitMs; passed += 1_000) {
      this.clock.advance(1_000);
      await this.settled();
    }
    await this.settled();
  }

  /** Waits until nothing is claimed and no operation is under way. */
  async settled(): Promise<void> {
    // A turn for the commit of what was asked for, several times: each answer asks for the next.
    for (let turn = 0; turn < 12; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (await encryptionEnded()) turn = 0;
      await this.store.read(findEvent, "");
    }
  }

  /** Waits until so many requests were sent and all of them are written down. */
  async sent(count: number, options: UntilOptions = {}): Promise<void> {
    const isDone = () => this.reports.length >= count;
    await until(`${count} requests to be sent and written down`, isDone, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#dispatchers.map((dispatcher) => dispatcher.stop(0)));
    await this.store.close();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
