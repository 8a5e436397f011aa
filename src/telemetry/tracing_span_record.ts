import {
  type Attributes,
  type AttributeValue,
  type HrTime,
  type SpanContext,
  type SpanKind,
  type SpanStatus,
  SpanStatusCode,
} from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";

/** What every span of a process has in common. */
export interface SpanOrigin {
  readonly resource: ReadableSpan["resource"];
  /** Who made the span. */
  readonly scope: ReadableSpan["instrumentationScope"];
  /** Milliseconds since some moment, with fractions; never goes back. */
  readonly elapsed: () => number;
  /** Takes a span that is over. */
  readonly onEnd: (span: ReadableSpan) => void;
}

/** What a span begins with. */
export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly context: SpanContext;
  /** The span above it; absent for none. */
  readonly parent?: SpanContext | undefined;
  /**
   * Milliseconds between `elapsed` and the Unix epoch. Spans of one call have one, so that they stay nested
   * when the wall clock is set.
   */
  readonly epochMs: number;
}

const NONE: never[] = [];
const UNSET: SpanStatus = { code: SpanStatusCode.UNSET };

/**
 * A span in the form in which the exporters of the SDK read it. The SDK's own costs several times as much
 * to make, for limits, links and events that no span here has.
 */
export class SpanRecord implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext?: SpanContext;
  readonly attributes: Attributes;
  readonly links = NONE;
  readonly events = NONE;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly epochMs: number;
  status: SpanStatus = UNSET;
  ended = false;
  readonly #context: SpanContext;
  readonly #origin: SpanOrigin;
  readonly #startedAt: number;
  #endedAt: number;

  constructor(origin: SpanOrigin, { name, kind, attributes, context, parent, epochMs }: SpanStart) {
    this.#origin = origin;
    this.#context = context;
    this.name = name;
    this.kind = kind;
    this.attributes = { ...attributes };
    this.epochMs = epochMs;
    if (parent !== undefined) this.parentSpanContext = parent;
    this.#startedAt = origin.elapsed();
    this.#endedAt = this.#startedAt;
  }

  get resource(): ReadableSpan["resource"] {
    return this.#origin.resource;
  }

  get instrumentationScope(): ReadableSpan["instrumentationScope"] {
    return this.#origin.scope;
  }

  get startTime(): HrTime {
    return hrTime(this.epochMs + this.#startedAt);
  }

  get endTime(): HrTime {
    return hrTime(this.epochMs + this.#endedAt);
  }

  get duration(): HrTime {
    return hrTime(this.#endedAt - this.#startedAt);
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  /** Notes something about the work. */
  set(name: string, value: AttributeValue): void {
    this.attributes[name] = value;
  }

  /** The work went wrong, with this text where there is one. */
  fail(message?: string): void {
    this.status = { code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) };
  }

  /** The work is over, and the span on its way. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.#endedAt = this.#origin.elapsed();
    this.#origin.onEnd(this);
  }
}

/** Milliseconds as whole seconds and nanoseconds. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  const nanos = Math.round((ms - seconds * 1_000) * 1_000_000);
  return nanos < 1_000_000_000 ? [seconds, nanos] : [seconds + 1, 0];
}
