import { shownText } from "../base/byte_text.ts";
import {
  type Caller,
  type CounterCache,
  type CountReceiver,
  isConditional,
  isJoint,
  type TakenHit,
} from "../ratelimit/decision/counter_cache.ts";
import type { Decision } from "../ratelimit/decision.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { SPAN_KINDS, type SpanRecord } from "./tracing_span_record.ts";
import type { Backend } from "../ratelimit/errors.ts";
import { errorText } from "../base/error_text.ts";
import { requestNote } from "./tracing_request_text.ts";
import type { CallTracer } from "./tracing_spans.ts";

/** Decides one request. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Which cache is traced. */
export interface TracedCache {
  readonly backend: Backend;
  /** Limits per second have a separate cache. */
  readonly perSecond: boolean;
}

const DECISION = { name: "ShouldRateLimit Execution", kind: SPAN_KINDS.internal };
/** The spans of round trips. */
export const TRIPS = {
  kv: { name: "KV Pipeline Execution", kind: SPAN_KINDS.client },
  mc: { name: "MC Fetch Execution", kind: SPAN_KINDS.client },
} as const;
const DOMAIN = "domain";
const REQUEST = "request string";
const MC_KEYS = "keysToGet length";
const KV_COMMANDS = "pipeline length";
const KV_PER_SECOND_COMMANDS = "perSecondPipeline length";

/** The decision with a span below that of its server call, in traced calls. */
export function traceDecide(decide: Decide, tracer: CallTracer): Decide {
  return (request, caller) => {
    const server = tracer.current;
    if (server === undefined) return decide(request, caller);
    const span = tracer.startChild(server, DECISION);
    span.set(DOMAIN, shownText(request.domain));
    span.set(REQUEST, requestNote(request));
    return tracer.runToEnd(span, () => decide(request, caller));
  };
}

/** The cache with a span for each round trip of a traced decision; the embedded cache has no round trips. */
export function traceCache(cache: CounterCache, tracer: CallTracer, traced: TracedCache): CounterCache {
  if (traced.backend === "memory") return cache;
  const trips = new Trips(tracer, traced.backend, traced.perSecond);
  return {
    isConditional: cache.isConditional,
    isImmediate: cache.isImmediate,
    counterOf: (hit) => {
      const counter = cache.counterOf(hit);
      return {
        take: (hits, caller, receiver) => {
          const trip = trips.of(caller);
          counter.take(hits, caller, trip === undefined ? receiver : trip.receiverOf(hit, hits, receiver));
        },
      };
    },
    remove: (keys) => cache.remove(keys),
    close: () => cache.close(),
  };
}

/** The round trips of traced decisions: the hits that a caller takes together are one. */
class Trips {
  readonly #tracer: CallTracer;
  readonly #backend: "kv" | "mc";
  readonly #perSecond: boolean;
  /** A second round trip starts when the first has ended, which is no longer within the decision. */
  readonly #decisions = new WeakMap<WeakKey, SpanRecord>();
  readonly #open = new WeakMap<Caller, Trip>();

  constructor(tracer: CallTracer, backend: "kv" | "mc", perSecond: boolean) {
    this.#tracer = tracer;
    this.#backend = backend;
    this.#perSecond = perSecond;
  }

  /** The round trip of the hits of this caller; undefined if its call is not traced. */
  of(caller: Caller | undefined): Trip | undefined {
    const open = caller === undefined ? undefined : this.#open.get(caller);
    if (open !== undefined) return open;
    const decision = this.#decisionOf(caller);
    if (decision === undefined) return undefined;
    const span = this.#tracer.startChild(decision, TRIPS[this.#backend]);
    const trip = new Trip(
      span,
      { backend: this.#backend, perSecond: this.#perSecond },
      caller?.hitCount ?? 1,
    );
    if (caller !== undefined) this.#open.set(caller, trip);
    return trip;
  }

  #decisionOf(caller: Caller | undefined): SpanRecord | undefined {
    const call = caller?.call;
    if (caller?.since === undefined || call === undefined) return this.#tracer.current;
    if (this.#tracer.current !== undefined) this.#decisions.set(call, this.#tracer.current);
    return this.#decisions.get(call);
  }
}

/** One round trip, whose span ends with its last hit. */
class Trip {
  readonly #span: SpanRecord;
  readonly #traced: TracedCache;
  #waiting: number;
  #hits = 0;
  readonly #commands = { main: 0, perSecond: 0 };

  constructor(span: SpanRecord, traced: TracedCache, hits: number) {
    this.#span = span;
    this.#traced = traced;
    this.#waiting = hits;
  }

  /** A receiver that notes the outcome of a hit first. */
  receiverOf(hit: TakenHit, hits: number, receiver: CountReceiver): CountReceiver {
    this.#hits++;
    const isApart = this.#traced.perSecond && hit.perSecond;
    this.#commands[isApart ? "perSecond" : "main"] += isJoint(hit) || isConditional(hit) || hits === 0
      ? 1
      : COMMANDS_OF_ADD;
    return {
      counted: (count) => {
        this.#end();
        receiver.counted(count);
      },
      failed: (error) => {
        this.#span.fail(errorText(error));
        this.#end();
        receiver.failed(error);
      },
    };
  }

  #end(): void {
    if (--this.#waiting > 0) return;
    if (this.#traced.backend !== "kv") this.#span.set(MC_KEYS, this.#hits);
    else {
      this.#span.set(KV_COMMANDS, this.#commands.main);
      this.#span.set(KV_PER_SECOND_COMMANDS, this.#commands.perSecond);
    }
    this.#span.end();
  }
}

/** A counter is increased, and its expiry set; a read and the call of a script are one command. */
const COMMANDS_OF_ADD = 2;
