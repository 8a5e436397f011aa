import {
  type Attributes,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import { type HeaderSource, readTraceParent, type TraceParent } from "./trace_context.ts";

/** How calls are chosen and their spans made. */
export interface CallTracerOptions {
  /** Makes spans and records each of them: the choice is made here. */
  readonly tracer: Tracer;
  /** Share of the calls that are traced where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** A span that others can be made below. */
export interface OpenSpan {
  readonly span: Span;
  /** What a span below it is made with. */
  readonly context: Context;
}

/**
 * Chooses the calls that are traced and nests their spans: what runs synchronously within `run` finds the
 * span in `current`. That is enough, and costs next to nothing, because the path from a server call
 * through the decision to the cache is synchronous; nothing of another call can run in between.
 */
export class CallTracer {
  readonly #options: CallTracerOptions;
  #current: OpenSpan | undefined;

  constructor(options: CallTracerOptions) {
    this.#options = options;
  }

  /** The span that the running code belongs to; absent in calls that are not traced. */
  get current(): OpenSpan | undefined {
    return this.#current;
  }

  /** The span of a server call; absent where the call is not chosen, which allocates nothing. */
  startServer(name: string, source: HeaderSource, attributes: Attributes): OpenSpan | undefined {
    const parent = readTraceParent(source);
    if (!(parent?.sampled ?? this.#chooses())) return undefined;
    const above = parent === undefined ? ROOT_CONTEXT : remoteContext(parent);
    return this.#open(
      this.#options.tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, above),
      above,
    );
  }

  /** A span below another one; `kind` says whether it waits for another service. */
  startBelow(
    above: OpenSpan,
    name: string,
    { attributes, kind }: { readonly attributes: Attributes; readonly kind: SpanKind },
  ): OpenSpan {
    const { context } = above;
    return this.#open(this.#options.tracer.startSpan(name, { kind, attributes }, context), context);
  }

  /** Runs `work` with this span as the current one while it does not wait. */
  run<T>(open: OpenSpan, work: () => T): T {
    const outer = this.#current;
    this.#current = open;
    try {
      return work();
    } finally {
      this.#current = outer;
    }
  }

  /** As `run`; the span ends with the work, also where that comes later. What it throws is its status. */
  runToEnd<T>(open: OpenSpan, work: () => T | Promise<T>, onAnswer?: (answer: T) => void): T | Promise<T> {
    const end = (answer: T): T => {
      onAnswer?.(answer);
      open.span.end();
      return answer;
    };
    const fail = (error: unknown): never => {
      open.span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
      open.span.end();
      throw error;
    };
    let answer: T | Promise<T>;
    try {
      answer = this.run(open, work);
    } catch (error) {
      return fail(error);
    }
    return answer instanceof Promise ? answer.then(end, fail) : end(answer);
  }

  #chooses(): boolean {
    const { samplingRate, random } = this.#options;
    return samplingRate >= 1 || random() < samplingRate;
  }

  #open(span: Span, above: Context): OpenSpan {
    return { span, context: trace.setSpan(above, span) };
  }
}

function remoteContext({ span, state }: TraceParent): Context {
  if (span === undefined) return ROOT_CONTEXT;
  const parent: SpanContext = {
    traceId: span.traceId,
    spanId: span.spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  };
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
