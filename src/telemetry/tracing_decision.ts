import type { Attributes } from "@opentelemetry/api";
import type { Caller, CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import type { Decision } from "../ratelimit/decision.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { SPAN_KINDS, type SpanRecord } from "./tracing_span_record.ts";
import { requestText } from "./tracing_request_text.ts";
import type { CallTracer } from "./tracing_spans.ts";

/** Decides one request. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Which cache is traced. */
export interface TracedCache {
  readonly backend: "kv" | "mc" | "memory";
  /** Limits per second are counted in a cache of their own. */
  readonly perSecond: boolean;
}

type Counts = number[] | Promise<number[]>;

const SPAN_NAMES = {
  kv: "KV Pipeline Execution",
  mc: "MC Fetch Execution",
} as const;

/** The same decision with a span below that of its server call; as it was in calls that are not traced. */
export function traceDecide(decide: Decide, tracer: CallTracer): Decide {
  return (request, caller) => {
    const server = tracer.current;
    if (server === undefined) return decide(request, caller);
    const attributes = { "domain": request.domain, "request string": requestText(request) };
    const kind = SPAN_KINDS.internal;
    const span = tracer.startBelow(server, "ShouldRateLimit Execution", { attributes, kind });
    return tracer.runToEnd(span, () => decide(request, caller));
  };
}

/**
 * The same cache with a span for each round trip of a traced decision. The embedded cache answers within
 * the decision, and has none.
 */
export function traceCache(cache: CounterCache, tracer: CallTracer, traced: TracedCache): CounterCache {
  if (traced.backend === "memory") return cache;
  const name = SPAN_NAMES[traced.backend];
  const kind = SPAN_KINDS.client;
  // Who asks again does so when the first answer came, which is no longer within the decision.
  const askAgain = new WeakMap<Caller, SpanRecord>();
  const decisionOf = (caller: Caller | undefined): SpanRecord | undefined => {
    if (caller?.since === undefined) return tracer.current;
    if (tracer.current !== undefined) askAgain.set(caller, tracer.current);
    return askAgain.get(caller);
  };
  const trip = (above: SpanRecord, attributes: Attributes, ask: () => Counts): Counts =>
    tracer.runToEnd(tracer.startBelow(above, name, { attributes, kind }), ask);
  return {
    add(hits, caller) {
      const above = decisionOf(caller);
      if (above === undefined) return cache.add(hits, caller);
      return trip(above, attributesOf(hits, COMMANDS_OF_ADD, traced), () => cache.add(hits, caller));
    },
    read(hits, caller) {
      const above = decisionOf(caller);
      if (above === undefined) return cache.read(hits, caller);
      return trip(above, attributesOf(hits, COMMANDS_OF_READ, traced), () => cache.read(hits, caller));
    },
    remove: (keys) => cache.remove(keys),
    close: () => cache.close(),
  };
}

/** A counter is moved and told when to expire. */
const COMMANDS_OF_ADD = 2;
const COMMANDS_OF_READ = 1;

function attributesOf(
  hits: readonly Hit[],
  commands: number,
  { backend, perSecond }: TracedCache,
): Attributes {
  if (backend !== "kv") return { "keysToGet length": hits.length };
  let apart = 0;
  if (perSecond) { for (const hit of hits) if (hit.perSecond) apart++; }
  return {
    "pipeline length": (hits.length - apart) * commands,
    "perSecondPipeline length": apart * commands,
  };
}
