import { ADMINISTRATOR } from "./administrators.ts";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { openPostgresStore } from "../../src/webhooks/store/postgres/store.ts";
import { SecretBox } from "../../src/webhooks/secrets/secret_box.ts";
import type { DeliverySender } from "../../src/webhooks/deliveries/sender.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import { StoreClock } from "../../src/webhooks/store/clock.ts";
import type { WebhookMetrics } from "../../src/webhooks/service/metrics.ts";
import { WebhookService } from "../../src/webhooks/service/service.ts";
import type { TakenWork } from "../../src/webhooks/service/background_work.ts";
import { encryptionEnded, SenderDouble } from "./dispatcher_fixture.ts";
import { FakeClock } from "./fake_clock.ts";
import { NO_LIMITS } from "./postgres_fixture.ts";
import { RecordedLogger } from "./recorded_logger.ts";
import type { AnswerBody } from "./webhook_client.ts";
import type { KillPoint } from "./webhook_faults.ts";
import { type Seen, seen, sha256 } from "./webhook_service_fixture.ts";
import { GivenWorkflows } from "./workflow_fixture.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

/** Options of a machine. */
interface MachineOptions {
  /** It ends for ever when it comes to that place. */
  readonly diesAt?: KillPoint | undefined;
  /** It does nothing more when it comes to that place for the first time, until `goOn`. */
  readonly stopsAt?: KillPoint | undefined;
  /** Time that its wall clock is ahead of that of the database. */
  readonly aheadMs?: number | undefined;
}

/** A request of a step. */
interface StepRequest {
  readonly key: string;
  readonly path: string;
  readonly at: number;
}

/** Time that an attempt may take, unless its endpoint says otherwise. */
const TIMEOUT_MS = 15_000;

const HOST = "https://receiver.example";
/** More than any lease and its margins. */
const PASSES_MS = 120_000;
const STEP_MS = 2_500;
/** Turns without cryptography and without an operation of a store, in which what waits for neither comes to its end. */
const QUIET_TURNS = 12;

/**
 * Machines in this thread that share a store: each has a webhook service, a connection to the store and a separate wall
 * clock, and may end or stand still at a named place. Time, of which the database knows the right one, stands still
 * until a test moves it; what is sent goes to doubles.
 */
export class MachineBed implements AsyncDisposable {
  readonly clock = new FakeClock(Date.UTC(2026, 0, 1, 12));
  readonly sender = new SenderDouble();
  readonly workflows = new GivenWorkflows();
  /** Requests of steps, each of which is answered with what `answerStep` says. */
  readonly steps: StepRequest[] = [];
  answerStep: (request: StepRequest) => Response = () => Response.json({});
  readonly machines: WebhookMachine[] = [];
  readonly secretBox: SecretBox;
  readonly #address: string | undefined;
  readonly #folder: string;
  #underWay = 0;
  #owner: WebhookMachine | undefined;

  private constructor(address: string | undefined, folder: string, secretBox: SecretBox) {
    this.#address = address;
    this.#folder = folder;
    this.secretBox = secretBox;
  }

  /** With the address of an empty PostgreSQL database; on a file when absent. */
  static async open(address?: string): Promise<MachineBed> {
    const keys = [new Uint8Array(32).fill(9)];
    const secretBox = await SecretBox.open({ keys, logger: new RecordedLogger() });
    return new MachineBed(address, await Deno.makeTempDir({ prefix: "weir_machines_" }), secretBox);
  }

  /** Starts one more. */
  async machine(options: MachineOptions = {}): Promise<WebhookMachine> {
    const machine = await WebhookMachine.start(this, options);
    this.machines.push(machine);
    return machine;
  }

  /** Returns whether several may work at the same time. */
  get isShared(): boolean {
    return this.#address !== undefined;
  }

  /** Waits until nothing more comes of what happened so far, while time stands still. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (await encryptionEnded() || this.#underWay > 0) quiet = -1;
    }
  }

  /** Lets time pass in steps. */
  async pass(ms: number): Promise<void> {
    await this.settled();
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(Math.min(STEP_MS, ms - passed));
      await this.settled();
    }
  }

  /** Lets time pass until something is so; answers how long that took. */
  async passUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<number> {
    const begin = this.clock.now();
    await this.settled();
    while (!await condition()) {
      if (this.clock.now() - begin >= PASSES_MS) {
        throw new Error(`Cannot wait for "${what}": it does not come`);
      }
      await this.pass(STEP_MS);
    }
    return this.clock.now() - begin;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.machines.map((machine) => machine.end()));
    await Deno.remove(this.#folder, { recursive: true });
  }

  /** Opens the store for a machine with that wall clock. */
  async openStore(clock: Clock): Promise<WebhookStore> {
    const logger = new RecordedLogger();
    if (this.#address === undefined) {
      return await openSqliteStore({ path: join(this.#folder, "weir.db"), logger, clock });
    }
    // Its own limits are those of the machine that the test runs on.
    const limits = { ...NO_LIMITS, clock: systemClock, random: () => 0.5 };
    return await openPostgresStore({ address: this.#address, poolSize: 2, logger, ...limits });
  }

  /** The kernel frees the lock of a file when its owner ends. */
  takeLock(asker: WebhookMachine): TakenWork | undefined {
    if (this.isShared) return { isSole: false, keep: () => true, release: () => {} };
    if (this.#owner?.isGone === false) return undefined;
    this.#owner = asker;
    return { isSole: true, keep: () => true, release: () => void (this.#owner = undefined) };
  }

  /** Counts an operation of a store for as long as it is under way. */
  async counted<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
    }
  }
}

/** One of them. */
export class WebhookMachine {
  readonly logger = new RecordedLogger();
  readonly #options: MachineOptions;
  readonly #bed: MachineBed;
  #state: "running" | "stopped" | "gone" = "running";
  #gate = Promise.withResolvers<void>();
  readonly #missed: (() => void)[] = [];
  #calls = 0;
  /** True if it has come to its place. */
  #isOver = false;
  #service: WebhookService | undefined;
  #closed: () => Promise<void> = () => Promise.resolve();

  private constructor(bed: MachineBed, options: MachineOptions) {
    this.#bed = bed;
    this.#options = options;
  }

  /** Starts its service. */
  static async start(bed: MachineBed, options: MachineOptions): Promise<WebhookMachine> {
    const machine = new WebhookMachine(bed, options);
    await machine.#open();
    return machine;
  }

  /** Waits until it has come to the place at which it ends or stops; time passes only where nothing is under way. */
  async reached(): Promise<void> {
    await this.#bed.passUntil("the machine to come to its place", () => this.#isOver);
  }

  /** Returns whether it has ended. */
  get isGone(): boolean {
    return this.#state === "gone";
  }

  /** Goes on after it was stopped, with all that its timers were to do meanwhile. */
  goOn(): void {
    this.#state = "running";
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
    for (const run of this.#missed.splice(0)) run();
  }

  /** A call of the administration. */
  async call(method: string, target: string, body?: unknown): Promise<Seen> {
    const [path = "", query = ""] = target.split("?");
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return seen(
      await this.service.administer({
        ...this.#call(),
        administrator: ADMINISTRATOR,
        method,
        path,
        query,
        ...sent,
      }),
    );
  }

  /** Everything of a list, one by one as they are shown. */
  async all(list: string): Promise<readonly AnswerBody[]> {
    const { body } = await this.call("GET", `/${list}?limit=200`);
    return await Promise.all(body.items.map(async ({ id }) => {
      return (await this.call("GET", `/${list}/${id}`)).body as unknown as AnswerBody;
    }));
  }

  /** Makes an endpoint at a path. */
  async endpoint(path: string, fields: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { status } = await this.call("POST", "/endpoints", { url: `${HOST}${path}`, ...fields });
    if (status !== 201) throw new Error(`Cannot make an endpoint: ${status}`);
  }

  /** Posts an event. */
  async event(kind: string, data: unknown = {}): Promise<Seen> {
    const body = JSON.stringify({ event: kind, data });
    const call = { ...this.#call(), keyHash: undefined, idempotencyKey: undefined, body };
    return seen(await this.service.acceptEvent(call));
  }

  /** Calls a trigger. */
  async trigger(name: string, token: string, idempotencyKey?: string): Promise<Seen> {
    const call = { ...this.#call(), name, keyHash: sha256(token), idempotencyKey, body: "{}" };
    return seen(await this.service.acceptTrigger(call));
  }

  async metrics(): Promise<WebhookMetrics> {
    return await this.service.metrics();
  }

  /** Its service. */
  get service(): WebhookService {
    if (this.#service === undefined) throw new Error("Cannot use the machine: it is not open");
    return this.#service;
  }

  /** Ends it; one that has ended at its place only lets go of the store. */
  async end(): Promise<void> {
    if (this.#state === "stopped") this.goOn();
    if (this.#state === "running") await this.service.stop(0);
    this.#state = "gone";
    await this.#closed();
    this.#closed = () => Promise.resolve();
  }

  async #open(): Promise<void> {
    const bed = this.#bed;
    const { logger } = this;
    const wallClock = this.#wallClock();
    const clock = bed.isShared ? new StoreClock({ clock: wallClock, logger }) : undefined;
    const store = await bed.openStore(wallClock);
    this.#closed = async () => {
      await clock?.close();
      await store.close();
    };
    await clock?.start(() => Promise.resolve(bed.clock.now()));
    this.#service = new WebhookService({
      store: this.#line(store),
      secretBox: bed.secretBox,
      workflows: bed.workflows,
      limit: () => Promise.resolve({ code: "OK" }),
      urlProblem: () => Promise.resolve(undefined),
      check: () => Promise.resolve([]),
      takeLock: () => bed.takeLock(this),
      sharedStoreMetrics: clock &&
        (() => ({ retries: 0, wallAheadMs: clock.wallAheadMs, problem: clock.problem })),
      sender: this.#sender(bed.sender),
      providerFetch: () => Promise.reject(new Error("nothing is fetched here")),
      fetch: (input, init) => this.#fetch(new Request(input, init)),
      clock: clock ?? wallClock,
      wallClock,
      random: () => 0.5,
      newId: () => crypto.randomUUID(),
      randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
      logger,
      maxInFlight: 500,
      timeoutMs: TIMEOUT_MS,
      version: "test",
      env: {},
      maxRunning: 200,
      retentionMs: 30 * 86_400_000,
      disableAfterMs: 5 * 86_400_000,
      atAttempt: (when, step) => this.#pass(`${when} ${step}`),
      atStep: (point) => this.#pass(`execution ${point}`),
    });
    this.#service.start();
  }

  #call(): { readonly requestId: string } {
    return { requestId: `request-${++this.#calls}` };
  }

  #wallClock(): Clock {
    const { clock } = this.#bed;
    const { aheadMs = 0 } = this.#options;
    return {
      now: () => clock.now() + aheadMs,
      elapsed: () => clock.elapsed(),
      after: (ms, run) =>
        clock.after(ms, () => {
          if (this.#state === "running") run();
          else if (this.#state === "stopped") this.#missed.push(run);
        }),
    };
  }

  /** The store, as long as the machine runs. */
  #line(store: WebhookStore): WebhookStore {
    return new Proxy(store, {
      get: (target, name) => {
        const operation = Reflect.get(target, name);
        if (typeof operation !== "function") return operation;
        if (name === "close") return () => Promise.resolve();
        return async (...given: unknown[]) => {
          await this.#going();
          try {
            return await this.#bed.counted(async () => await Reflect.apply(operation, target, given));
          } finally {
            await this.#going();
          }
        };
      },
    });
  }

  #sender(sender: DeliverySender): DeliverySender {
    return {
      send: async (request, options) => {
        const result = await sender.send(request, options);
        await this.#going();
        return result;
      },
    };
  }

  async #fetch({ url, headers }: Request): Promise<Response> {
    const bed = this.#bed;
    const key = headers.get("idempotency-key") ?? "";
    const request = { key, path: new URL(url).pathname, at: bed.clock.now() };
    bed.steps.push(request);
    const response = bed.answerStep(request);
    await this.#going();
    return response;
  }

  /** Settles while it runs, or when it runs again. */
  async #going(): Promise<void> {
    if (this.#state === "gone") await new Promise(() => {});
    while (this.#state === "stopped") await this.#gate.promise;
  }

  async #pass(point: KillPoint): Promise<void> {
    if (this.#state !== "running") return await this.#going();
    const { diesAt, stopsAt } = this.#options;

    if (this.#isOver || (point !== diesAt && point !== stopsAt)) return;
    this.#isOver = true;
    this.#state = point === diesAt ? "gone" : "stopped";
    await this.#going();
  }
}
