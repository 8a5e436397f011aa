import type { Administrator } from "../../src/webhooks/api/administrator.ts";
import { ADMINISTRATOR } from "./administrators.ts";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Logger } from "../../src/base/log.ts";
import type { WebhookAnswer } from "../../src/webhooks/api/calls.ts";
import { SecretBox } from "../../src/webhooks/secrets/secret_box.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import type { LimitCall } from "../../src/webhooks/model/limit_call.ts";
import { WebhookService, type WebhookServiceParts } from "../../src/webhooks/service/service.ts";
import type { Workflow, WorkflowListing, Workflows } from "../../src/webhooks/model/workflow.ts";
import { FakeClock } from "./fake_clock.ts";
import { UNSYNCED } from "./sqlite_fixture.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

const RESULT = { kind: "set", name: "result", value: { kind: "value", value: {} } } as const;

/** Options of a webhook bed. */
export interface WebhookBedOptions {
  readonly limit?: LimitCall;
  /** Wraps the store, such as one that fails. */
  readonly store?: (store: WebhookStore) => WebhookStore;
  readonly parts?: Partial<WebhookServiceParts>;
}

/** A body; which of these fields it has is for the test to know. */
export interface Body {
  readonly [name: string]: unknown;
  readonly id: string;
  readonly name: string;
  readonly key: string;
  readonly keyId: string;
  readonly secret: string;
  readonly activeAt: string;
  readonly code: string;
  readonly field: string;
  readonly state: string;
  readonly executionId: string;
  readonly deliveries: number;
  readonly items: readonly Body[];
  readonly keys: readonly Body[];
  readonly nextCursor: string | undefined;
}

/** An answer as a test looks at it. */
export interface Seen {
  readonly status: number;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;
}

/** A webhook service in this thread on its own store, with a clock that stands still. */
export class WebhookBed implements AsyncDisposable {
  readonly clock = new FakeClock(Date.UTC(2026, 0, 1, 12));
  /** Workflows by name; a test takes them away and puts them there. */
  readonly workflows = new Map<string, string>([["order-intake", "workflow: order-intake"]]);
  listing: WorkflowListing = { problems: [], entries: [] };
  /** Lines of the log. */
  readonly log: string[] = [];
  #store: WebhookStore | undefined;
  #service: WebhookService | undefined;
  #folder = "";
  #count = 0;

  /** Opens one. */
  static async open(options: WebhookBedOptions = {}): Promise<WebhookBed> {
    const bed = new WebhookBed();
    bed.#folder = await Deno.makeTempDir({ prefix: "weir_webhooks_" });
    const { clock } = bed;
    const logger = bed.#logger();
    const opened = await openSqliteStore({
      path: join(bed.#folder, "weir.db"),
      logger,
      clock,
      ...UNSYNCED,
    });
    const store = bed.#store = options.store?.(opened) ?? opened;
    const secretBox = await SecretBox.open({ keyFile: join(bed.#folder, "weir.key"), logger });
    bed.#service = new WebhookService({
      store,
      secretBox,
      workflows: bed.#workflowsPort(),
      limit: options.limit ?? (() => Promise.resolve({ code: "OK" })),
      urlProblem: (url) =>
        Promise.resolve(url.startsWith("https://") ? undefined : "an https URL is expected"),
      check: () => Promise.resolve([{ stage: "url", ok: true, detail: "it is right" }]),
      takeLock: () => undefined,
      sender: { send: () => Promise.reject(new Error("nothing is sent here")) },
      fetch: () => Promise.reject(new Error("nothing is fetched here")),
      providerFetch: () => Promise.reject(new Error("nothing is fetched here")),
      clock,
      random: () => 0.5,
      newId: () => crypto.randomUUID(),
      randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
      logger,
      maxInFlight: 500,
      timeoutMs: 15_000,
      version: "test",
      env: {},
      maxRunning: 200,
      retentionMs: 30 * 86_400_000,
      disableAfterMs: 5 * 86_400_000,
      ...options.parts,
    });
    return bed;
  }

  /** The port. */
  get service(): WebhookService {
    if (this.#service === undefined) throw new Error("Cannot use the bed: it is not open");
    return this.#service;
  }

  get store(): WebhookStore {
    if (this.#store === undefined) throw new Error("Cannot use the bed: it is not open");
    return this.#store;
  }

  /** Folder of the store. */
  get folder(): string {
    return this.#folder;
  }

  /** A call of the administration; what is no text is sent as JSON. */
  async call(
    method: string,
    target: string,
    body?: unknown,
    administrator: Administrator = ADMINISTRATOR,
    idempotencyKey?: string,
  ): Promise<Seen> {
    const [path = "", query = ""] = target.split("?");
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const asked = { requestId: this.requestId(), administrator, method, path, query, idempotencyKey };
    return seen(await this.service.administer(text === undefined ? asked : { ...asked, body: text }));
  }

  /** Makes a trigger; answers its record with the key. */
  async trigger(fields: Readonly<Record<string, unknown>> = {}): Promise<Body> {
    const sent = { name: "order-intake", workflow: "order-intake", ...fields };
    return (await this.call("POST", "/triggers", sent)).body;
  }

  /** Calls a trigger. */
  async start(
    key: string,
    body: unknown,
    { name = "order-intake", idempotencyKey }: { name?: string; idempotencyKey?: string } = {},
  ): Promise<Seen> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const call = { requestId: this.requestId(), name, keyHash: sha256(key), idempotencyKey, body: text };
    return seen(await this.service.acceptTrigger(call));
  }

  /** Calls a trigger with a signature; the media type is JSON unless the headers say something else. */
  async startSigned(
    headers: Readonly<Record<string, string>>,
    body: string | Uint8Array,
    name = "order-intake",
  ): Promise<Seen> {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    const sent = Object.entries({ "content-type": "application/json", ...headers });
    const requestId = this.requestId();
    const target = `/api/v1/workflows/triggers/${name}`;
    const call = { requestId, name, target, headers: sent, body: bytes, maxBodyBytes: 1_048_576 };
    return seen(await this.service.acceptSignedTrigger(call));
  }

  /** Posts an event, as the administration without a key. */
  async post(
    body: unknown,
    { key, idempotencyKey }: { key?: string; idempotencyKey?: string } = {},
  ): Promise<Seen> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const keyHash = key === undefined ? undefined : sha256(key);
    return seen(
      await this.service.acceptEvent({
        requestId: this.requestId(),
        keyHash,
        idempotencyKey,
        body: text,
      }),
    );
  }

  /** Another id for each call. */
  requestId(): string {
    return `request-${++this.#count}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop(0);
    await Deno.remove(this.#folder, { recursive: true });
  }

  #workflowsPort(): Workflows {
    return {
      current: (name) => {
        const text = this.workflows.get(name);
        if (text === undefined) return undefined;
        const workflow: Workflow = { id: name, timeoutMs: 1_000, steps: [] };
        return { version: { id: sha256(text), workflow: name, text }, workflow };
      },
      listing: () => this.listing,
      parse: () => ({ id: "order-intake", timeoutMs: 1_000, steps: [RESULT] }),
    };
  }

  #logger(): Logger {
    const line = (message: string, fields: object = {}) =>
      void this.log.push(`${message} ${Deno.inspect(fields)}`);
    return { debug: line, info: line, warning: line, error: line };
  }
}

/** SHA-256 in lower-case hex. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The answer with its body read. */
export function seen({ status, headers, body }: WebhookAnswer): Seen {
  return { status, headers, body: body === "" ? undefined : JSON.parse(body) };
}
