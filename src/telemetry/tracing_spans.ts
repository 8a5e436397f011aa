import type { TracedWork } from "../base/traced_work.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { LogFields } from "../base/log.ts";
import { SPAN_KINDS, type SpanOrigin, SpanRecord, type SpanShape } from "./tracing_span_record.ts";
import { type HeaderSource, namesTrace, passedTraceState, readTraceParent } from "../base/trace_context.ts";

/** Which calls are traced, and who takes their spans. */
interface CallTracerOptions {
  /** Takes an ended span. */
  readonly onEnd: SpanOrigin["onEnd"];
  /** Share of the calls that are traced where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly clock: Clock;
}

/** Work at the end of a span. */
interface RunToEndOptions<T> {
  /** Called with the answer before the span ends. */
  readonly onAnswer?: (answer: T) => void;
  /** Called with an error before the span ends; returns false for an error of the caller. */
  readonly onError?: (error: unknown) => boolean;
}

/**
 * Chooses the calls that are traced and nests their spans: what runs synchronously within `run` finds the
 * span in `current`. That suffices, because the path from a server call to the cache is synchronous.
 */
export class CallTracer {
  readonly #options: CallTracerOptions;
  readonly #origin: SpanOrigin;
  /** Server spans by their calls, for log lines: a line after a wait finds no `current`. */
  readonly #calls = new WeakMap<WeakKey, SpanRecord>();
  #current: SpanRecord | undefined;
  /** Calls to skip before the next traced one. */
  #skipped: number;

  constructor(options: CallTracerOptions) {
    const { onEnd, clock } = options;
    this.#options = options;
    this.#skipped = drawSkipped(options);
    this.#origin = { onEnd, elapsed: () => clock.elapsed() };
  }

  /** The span of the running code; absent in calls that are not traced. */
  get current(): SpanRecord | undefined {
    return this.#current;
  }

  /** The span of a server call; absent where the call is not traced, which allocates nothing. */
  startServer(shape: SpanShape, source: HeaderSource): SpanRecord | undefined {
    const context = readTraceParent(source);
    if (!(context?.sampled ?? this.#isChosen())) return undefined;
    const caller = context?.span;
    const { clock } = this.#options;
    const startedAt = clock.elapsed();
    return new SpanRecord(this.#origin, {
      shape,
      traceId: caller?.traceId ?? "",
      state: caller === undefined ? "" : passedTraceState(context?.state ?? ""),
      parent: undefined,
      remoteParentId: caller?.spanId ?? "",
      epochMs: clock.now() - startedAt,
      startedAt,
    });
  }

  /** Remembers the server span of a call, for its log lines. */
  noteCall(call: WeakKey, span: SpanRecord): void {
    this.#calls.set(call, span);
  }

  /** The fields of log lines about a call; none where it is not traced. */
  logFields(call: WeakKey): LogFields {
    const span = this.#calls.get(call);
    return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
  }

  /** True when the next server call is not traced, if it has these headers. */
  skipsNext(fields: NonNullable<HeaderSource["fields"]>): boolean {
    return this.#skipped > 0 && !namesTrace(fields);
  }

  /** Counts a call that was not traced, instead of `startServer`. */
  skip(): void {
    this.#skipped--;
  }

  /** A span below another one. */
  startChild(parent: SpanRecord, shape: SpanShape): SpanRecord {
    const { state, epochMs } = parent.start;
    const startedAt = this.#options.clock.elapsed();
    const start = { shape, traceId: "", state, parent, remoteParentId: "", epochMs, startedAt };
    return new SpanRecord(this.#origin, start);
  }

  /** Runs `work` with this span as the current one until it waits. */
  run<T>(span: SpanRecord, work: () => T): T {
    const outer = this.#current;
    this.#current = span;
    try {
      return work();
    } finally {
      this.#current = outer;
    }
  }

  /** As `run`; the span ends with the work, also asynchronously, and an error of the work is its status. */
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

  /** Records the span of finished work. */
  record({ name, kind, id, startedAt, tookMs, attributes, failure }: TracedWork): void {
    const traceId = this.traceOfWork(id);
    if (traceId === undefined) return;
    const { onEnd } = this.#options;
    const shape = { name, kind: SPAN_KINDS[kind], attributes };
    const times = { epochMs: startedAt, startedAt: 0 };
    const start = { shape, traceId, state: "", parent: undefined, remoteParentId: "", ...times };
    const span = new SpanRecord({ elapsed: () => tookMs, onEnd }, start);
    if (failure !== undefined) span.fail(failure);
    span.end();
  }

  /** The trace of the work with this UUID, if it is traced. The id alone decides, so that traces are whole. */
  traceOfWork(id: string): string | undefined {
    const traceId = id.replaceAll("-", "");
    const chance = Number.parseInt(traceId.slice(-8), 16) / 2 ** 32;
    return chance < this.#options.samplingRate ? traceId : undefined;
  }

  #isChosen(): boolean {
    if (this.#skipped > 0) {
      this.#skipped--;
      return false;
    }
    this.#skipped = drawSkipped(this.#options);
    return true;
  }
}

/** Number of calls to skip: a geometric distribution, as drawing for every call, but no chance for skipped ones. */
function drawSkipped({ samplingRate, random }: CallTracerOptions): number {
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
