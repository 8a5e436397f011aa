import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type SpanOrigin, SpanRecord, type SpanShape } from "./tracing_span_record.ts";
import { type HeaderSource, readTraceParent } from "./trace_context.ts";
import { passedTraceState } from "./tracing_state.ts";

/** How calls are chosen and their spans made. */
export interface CallTracerOptions extends Pick<SpanOrigin, "onEnd"> {
  /** Share of the calls that are traced where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly clock: Clock;
}

/** What becomes of a span at the end of its work. */
export interface RunToEndOptions<T> {
  /** Told of the answer before the span ends. */
  readonly onAnswer?: (answer: T) => void;
  /**
   * Told of what the work throws before the span ends; answers whether that is a fault of it, and not its
   * caller's. It always is when absent.
   */
  readonly onError?: (error: unknown) => boolean;
}

/**
 * Chooses the calls that are traced and nests their spans: what runs synchronously within `run` finds the
 * span in `current`. That is enough, and costs next to nothing, because the path from a server call
 * through the decision to the cache is synchronous; nothing of another call can run in between.
 */
export class CallTracer {
  readonly #options: CallTracerOptions;
  readonly #origin: SpanOrigin;
  #current: SpanRecord | undefined;
  /** Calls that are not chosen before the next one that is. */
  #passedOver: number;

  constructor(options: CallTracerOptions) {
    const { onEnd, clock } = options;
    this.#options = options;
    this.#passedOver = drawPassedOver(options);
    this.#origin = { onEnd, elapsed: () => clock.elapsed() };
  }

  /** The span that the running code belongs to; absent in calls that are not traced. */
  get current(): SpanRecord | undefined {
    return this.#current;
  }

  /** The span of a server call; absent where the call is not chosen, which allocates nothing. */
  startServer(shape: SpanShape, source: HeaderSource): SpanRecord | undefined {
    const parent = readTraceParent(source);
    if (!(parent?.sampled ?? this.#chooses())) return undefined;
    const above = parent?.span;
    const { clock } = this.#options;
    const startedAt = clock.elapsed();
    return new SpanRecord(this.#origin, {
      shape,
      traceId: above?.traceId ?? "",
      spanId: "",
      state: above === undefined ? "" : passedTraceState(parent?.state ?? ""),
      above: undefined,
      aboveId: above?.spanId ?? "",
      isRemote: above !== undefined,
      epochMs: clock.now() - startedAt,
      startedAt,
    });
  }

  /** A span below another one. */
  startBelow(above: SpanRecord, shape: SpanShape): SpanRecord {
    const { state, epochMs } = above.start;
    return new SpanRecord(this.#origin, {
      shape,
      traceId: "",
      spanId: "",
      state,
      above,
      aboveId: "",
      isRemote: false,
      epochMs,
      startedAt: this.#options.clock.elapsed(),
    });
  }

  /** Runs `work` with this span as the current one while it does not wait. */
  run<T>(span: SpanRecord, work: () => T): T {
    const outer = this.#current;
    this.#current = span;
    try {
      return work();
    } finally {
      this.#current = outer;
    }
  }

  /** As `run`; the span ends with the work, also where that comes later. What it throws is its status. */
  runToEnd<T>(
    span: SpanRecord,
    work: () => T | Promise<T>,
    options: RunToEndOptions<T> = {},
  ): T | Promise<T> {
    let answer: T | Promise<T>;
    try {
      answer = this.run(span, work);
    } catch (error) {
      return endFailed(span, error, options);
    }
    if (!(answer instanceof Promise)) return endAnswered(span, answer, options);
    return answer.then(
      (late) => endAnswered(span, late, options),
      (error: unknown) => endFailed(span, error, options),
    );
  }

  #chooses(): boolean {
    if (this.#passedOver > 0) {
      this.#passedOver--;
      return false;
    }
    this.#passedOver = drawPassedOver(this.#options);
    return true;
  }
}

/**
 * How many calls to pass over until one is chosen. It is what drawing for every call leads to (a geometric
 * distribution), and costs calls that are not traced no random number.
 */
function drawPassedOver({ samplingRate, random }: CallTracerOptions): number {
  if (samplingRate >= 1) return 0;
  return samplingRate > 0 ? Math.floor(Math.log1p(-random()) / Math.log1p(-samplingRate)) : Infinity;
}

function endAnswered<T>(span: SpanRecord, answer: T, { onAnswer }: RunToEndOptions<T>): T {
  onAnswer?.(answer);
  span.end();
  return answer;
}

function endFailed<T>(span: SpanRecord, error: unknown, { onError }: RunToEndOptions<T>): never {
  if (onError?.(error) !== false) span.fail(errorText(error));
  span.end();
  throw error;
}
