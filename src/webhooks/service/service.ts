import { errorText } from "../../base/error_text.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { timeText } from "../../base/rfc3339.ts";
import { settledWithin } from "../../base/wait.ts";
import { EventAcceptor } from "../api/accept_event.ts";
import { TriggerAcceptor, type TriggerAcceptorOptions } from "../api/accept_trigger.ts";
import type { AdministrationParts } from "../api/route.ts";
import { problemAnswer, problemOf, SHUTTING_DOWN, type WebhookProblem } from "../api/problem.ts";
import type {
  AdministrationCall,
  EventCall,
  SignedTriggerCall,
  TriggerCall,
  TriggerCheck,
  WebhookAnswer,
  WebhookCalls,
} from "../api/calls.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { endpointNote, prefixed, storeGauges, type WebhookMetrics } from "./metrics.ts";
import { BackgroundWork, type BackgroundWorkParts } from "./background_work.ts";
import type { OperationalBatch } from "../model/operational_event.ts";
import { OperationalEvents, type OperationalEventsOptions } from "./operational_events.ts";
import type { Workflows } from "../model/workflow.ts";
import { StoreBounds, type StoreBoundSettings } from "./store_bounds.ts";
import { releaseClaims } from "../store/operations/claims.ts";
import { StoreError, type StoreMetrics } from "../store/store.ts";

/** Parts of a `WebhookService`. */
export interface WebhookServiceParts extends BackgroundWorkParts, StoreBoundSettings {
  readonly urlProblem: AdministrationParts["urlProblem"];
  readonly check: AdministrationParts["check"];
  readonly randomBytes: AdministrationParts["randomBytes"];
  readonly publicUrl?: AdministrationParts["publicUrl"];
  readonly maxBodyBytes?: AdministrationParts["maxBodyBytes"];
  readonly providerFetch: TriggerAcceptorOptions["providerFetch"];
  readonly workflows: Workflows;
  /** Asks the decision service. */
  readonly limit: LimitCall;
  readonly secretBox:
    & BackgroundWorkParts["secretBox"]
    & OperationalEventsOptions["secretBox"]
    & { seal: AdministrationParts["seal"] };
  /** A note for the operator on the secrets in the store. */
  readonly noteOfSecrets?: (() => Promise<string | undefined>) | undefined;
  /** Closes the store and all that the service uses; only the store when absent. */
  readonly close?: (() => Promise<void>) | undefined;
}

/** The last failure of the store. */
interface Trouble {
  readonly error: StoreError;
  /** By the clock's `elapsed`. */
  readonly at: number;
  /** True if `metrics` has returned it. */
  isShown: boolean;
}

/** The time for running calls when the service stops. */
const CALLS_MS = 2_000;
/** A failure counts as the state of the store for so long; a busy store is tried instead. */
const TROUBLE_MS = 10_000;
/** A failing store fails with every call. */
const INTERNAL: WebhookProblem = {
  code: "internal",
  detail: "Cannot answer: an internal error",
};

/** Accepts triggers and events, administers, and does the background work where it holds the lock of the store. */
export class WebhookService implements WebhookCalls {
  readonly #parts: WebhookServiceParts;
  readonly #work: BackgroundWork;
  readonly #bounds: StoreBounds;
  readonly #triggers: TriggerAcceptor;
  readonly #events: EventAcceptor;
  readonly #operationalEvents: OperationalEvents;
  readonly #administrationParts: AdministrationParts;
  readonly #log: ThrottledLog;
  readonly #running = new Set<Promise<unknown>>();
  #isStopping = false;
  #trouble: Trouble | undefined;
  #hadProblem = false;
  /** Failures of the store in calls. */
  #storeErrors = 0;

  constructor(parts: WebhookServiceParts) {
    this.#parts = parts;
    this.#log = new ThrottledLog(parts.logger, parts);
    const bounds = this.#bounds = new StoreBounds({ ...parts, isWorking: () => this.#work.isWorking });
    const work = this.#work = new BackgroundWork({ ...parts, isStoreFull: () => bounds.isFull });
    const wakeRunner = () => work.wakeRunner();
    this.#triggers = new TriggerAcceptor({
      ...parts,
      bounds,
      acceptExecution: (...call) => work.acceptExecution(...call),
    });
    this.#events = new EventAcceptor({ ...parts, bounds, onAccepted: (ids) => work.wakeDispatcher(ids) });
    this.#operationalEvents = new OperationalEvents({
      ...parts,
      isStoreFull: () => bounds.isFull,
      onWritten: (ids) => work.wakeDispatcher(ids),
    });
    this.#administrationParts = {
      ...parts,
      seal: (text) => parts.secretBox.seal(text),
      inFlight: (endpointId) => work.inFlight(endpointId),
      wakeDispatcher: () => work.wakeDispatcher(),
      retryNow: (endpointId) => work.retryNow(endpointId),
      admit: () => bounds.admit(),
      wakeRunner,
      callTrigger: (...call) => this.#triggers.start(...call),
      rerun: (...call) => this.#triggers.rerun(...call),
    };
  }

  /** Begins to measure the bounds of the store and to try for its lock, and to work once it has it. */
  start(): void {
    this.#bounds.start();
    this.#work.start();
    this.#parts.workflows.onEvent?.((event) => this.#operationalEvents.report(event));
  }

  /** True if this process dispatches and runs steps. */
  get isWorking(): boolean {
    return this.#work.isWorking;
  }

  acceptTrigger(call: TriggerCall): Promise<WebhookAnswer> {
    return this.#answered(call.requestId, () => this.#triggers.accept(call));
  }

  acceptSignedTrigger(call: SignedTriggerCall): Promise<WebhookAnswer> {
    return this.#answered(call.requestId, () => this.#triggers.acceptSigned(call));
  }

  checkTrigger(call: TriggerCheck): Promise<WebhookAnswer> {
    return this.#answered(call.requestId, () => this.#triggers.check(call));
  }

  acceptEvent(call: EventCall): Promise<WebhookAnswer> {
    return this.#answered(call.requestId, () => this.#events.accept(call));
  }

  administer(call: AdministrationCall): Promise<WebhookAnswer> {
    return this.#answered(call.requestId, async () => {
      // Loaded by the first call: most services are never administered while they run.
      const { administer } = await import("../api/administration.ts");
      return await administer(call, this.#administrationParts);
    });
  }

  /** Writes operational events of the main thread; false when they are lost. */
  async report(batch: OperationalBatch): Promise<boolean> {
    if (this.#isStopping) return false;
    return await this.#tracked(this.#operationalEvents.write(batch));
  }

  /** Counters since the start, and the durations since the last call. */
  async metrics(): Promise<WebhookMetrics> {
    const { store, clock, noteOfSecrets } = this.#parts;
    const problem = await this.#storeProblem();
    const work = this.#work.metrics(this.#storeErrors);
    const refusals = prefixed("signature_refusals", this.#triggers.signatureRefusals);
    const bounds = this.#bounds.metrics();
    const metrics = {
      ...work,
      counters: { ...work.counters, ...bounds.counters, ...refusals },
      gauges: { ...work.gauges, ...bounds.gauges },
    };
    try {
      const now = clock.now();
      const ofStore = await store.metrics(now);
      const gauges = storeGauges(ofStore, now);
      this.#logProblemEnd(problem);
      const notes = [
        pauseNote(ofStore),
        metrics.note,
        this.#bounds.note,
        endpointNote(ofStore),
        await noteOfSecrets?.(),
      ]
        .filter((note) => note !== undefined);
      return {
        ...metrics,
        gauges: { ...metrics.gauges, ...gauges },
        problem,
        note: notes.length === 0 ? undefined : notes.join("\n"),
      };
    } catch (error) {
      this.#hadProblem = true;
      return { ...metrics, problem: errorText(error) };
    }
  }

  /** Refuses new calls, gives attempts and steps this long, and closes the store. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const running = Promise.allSettled(this.#running);
    await Promise.all([
      settledWithin(running, CALLS_MS, this.#parts.clock),
      ...[this.#work.stop(graceMs), this.#bounds.stop()],
    ]);
    await this.#operationalEvents.stop();
    const { store, close = () => store.close() } = this.#parts;
    await close();
  }

  #answered(requestId: string, work: () => Promise<WebhookAnswer>): Promise<WebhookAnswer> {
    if (this.#isStopping) return Promise.resolve(problemAnswer(SHUTTING_DOWN, requestId));
    const answer = work().catch((error: unknown) => {
      if (error instanceof StoreError) this.#noteTrouble(error);
      const problem = problemOf(error);
      if (problem !== undefined) return problemAnswer(problem, requestId);
      this.#parts.logger.error("Cannot answer a call of the webhook service", { requestId, error });
      return problemAnswer(INTERNAL, requestId);
    });
    return this.#tracked(answer);
  }

  /** Work that `stop` waits for. */
  #tracked<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    return work.finally(() => this.#running.delete(work));
  }

  /** The current problem of the store, if any. */
  async #storeProblem(): Promise<string | undefined> {
    const { clock, store } = this.#parts;
    const before = this.#trouble;
    const isOld = before !== undefined && clock.elapsed() - before.at >= TROUBLE_MS;
    // Trouble from before the last look may still be there, although nothing was written since.
    if (before?.error.code === "busy" && (before.isShown || isOld)) {
      try {
        // Releases nothing, but begins and commits a write, which fails for as long as the store is locked.
        await store.write(releaseClaims, [], clock.now());
        if (this.#trouble === before) this.#trouble = undefined;
      } catch (error) {
        if (error instanceof StoreError) this.#noteTrouble(error);
      }
    }
    const trouble = this.#trouble;
    if (trouble === undefined || clock.elapsed() - trouble.at >= TROUBLE_MS) return undefined;
    trouble.isShown = true;
    return trouble.error.message;
  }

  /** The end of a problem is a warning, so that the log has it wherever it has the failures. */
  #logProblemEnd(problem: string | undefined): void {
    if (this.#hadProblem && problem === undefined) this.#parts.logger.warning("Webhook store works again");
    this.#hadProblem = problem !== undefined;
  }

  #noteTrouble(error: StoreError): void {
    if (error.code === "closed") return;
    this.#storeErrors++;
    const at = this.#parts.clock.elapsed();
    this.#trouble = { error, at, isShown: this.#trouble?.isShown ?? false };
    this.#log.error("store", "Webhook store failed", { error });
  }
}

function pauseNote({ pause }: StoreMetrics): string | undefined {
  return pause && `all deliveries are paused by ${pause.actor} since ${timeText(pause.at)}`;
}
