import { shownText } from "../base/byte_text.ts";
import type { Caller, ConditionalHit, CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import type { Decision } from "../ratelimit/decision.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import type { KnownDecider } from "../ratelimit/known_requests.ts";
import { SPAN_KINDS, type SpanRecord } from "./tracing_span_record.ts";
import { requestNote } from "./tracing_request_text.ts";
import type { CallTracer } from "./tracing_spans.ts";

/** Decides one request. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Which cache is traced. */
export interface TracedCache {
  readonly backend: "kv" | "mc" | "memory";
  /** Limits per second have a separate cache. */
  readonly perSecond: boolean;
}

type Answers<Answer> = Answer[] | Promise<Answer[]>;

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

/** Knows no request of a traced call. */
export function untracedOnly(known: KnownDecider, tracer: CallTracer): KnownDecider {
  const isUntraced = () => tracer.current === undefined;
  return {
    countsHere: known.countsHere,
    count: (...request) => isUntraced() ? known.count(...request) : undefined,
    sharedPlan: (bytes) => isUntraced() ? known.sharedPlan(bytes) : undefined,
    decide: (...call) => known.decide(...call),
    learn: (...seen) => {
      if (isUntraced()) known.learn(...seen);
    },
  };
}

/** The cache with a span for each round trip of a traced decision; the embedded cache has no round trips. */
export function traceCache(cache: CounterCache, tracer: CallTracer, traced: TracedCache): CounterCache {
  if (traced.backend === "memory") return cache;
  const shape = TRIPS[traced.backend];
  // A second round trip starts when the first has ended, which is no longer within the decision.
  const decisions = new WeakMap<Caller, SpanRecord>();
  const decisionOf = (caller: Caller | undefined): SpanRecord | undefined => {
    if (caller?.since === undefined) return tracer.current;
    if (tracer.current !== undefined) decisions.set(caller, tracer.current);
    return decisions.get(caller);
  };
  const trip = <Answer>(
    parent: SpanRecord,
    hits: readonly Pick<Hit, "perSecond">[],
    commands: number,
    ask: () => Answers<Answer>,
  ): Answers<Answer> => {
    const span = tracer.startChild(parent, shape);
    noteHits(span, hits, commands, traced);
    return tracer.runToEnd(span, ask);
  };
  const { take } = cache;
  return {
    add(hits, caller) {
      const parent = decisionOf(caller);
      if (parent === undefined) return cache.add(hits, caller);
      return trip(parent, hits, COMMANDS_OF_ADD, () => cache.add(hits, caller));
    },
    read(hits, caller) {
      const parent = decisionOf(caller);
      if (parent === undefined) return cache.read(hits, caller);
      return trip(parent, hits, COMMANDS_OF_READ, () => cache.read(hits, caller));
    },
    ...(take === undefined ? {} : {
      take: (hits: readonly ConditionalHit[], caller?: Caller) => {
        const parent = decisionOf(caller);
        if (parent === undefined) return take.call(cache, hits, caller);
        return trip(parent, hits, COMMANDS_OF_TAKE, () => take.call(cache, hits, caller));
      },
    }),
    // Only for untraced calls.
    ...(cache.addOne === undefined ? {} : { addOne: cache.addOne.bind(cache) }),
    remove: (keys) => cache.remove(keys),
    close: () => cache.close(),
  };
}

/** A counter is increased, and its expiry set. */
const COMMANDS_OF_ADD = 2;
const COMMANDS_OF_READ = 1;
/** A call of a script. */
const COMMANDS_OF_TAKE = 1;

function noteHits(
  span: SpanRecord,
  hits: readonly Pick<Hit, "perSecond">[],
  commands: number,
  { backend, perSecond }: TracedCache,
): void {
  if (backend !== "kv") return span.set(MC_KEYS, hits.length);
  let apart = 0;
  if (perSecond) { for (const hit of hits) if (hit.perSecond) apart++; }
  span.set(KV_COMMANDS, (hits.length - apart) * commands);
  span.set(KV_PER_SECOND_COMMANDS, apart * commands);
}
