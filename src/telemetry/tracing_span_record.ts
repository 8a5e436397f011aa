import type { Attributes, AttributeValue } from "@opentelemetry/api";

/** What a span does for its caller, by the numbers that the SDK has for it. */
export const SPAN_KINDS = { internal: 0, server: 1, client: 2 } as const;

/** One of those numbers. */
export type SpanKindNumber = typeof SPAN_KINDS[keyof typeof SPAN_KINDS];

/** What every span of a process has in common. */
export interface SpanOrigin {
  /** Milliseconds since some moment, with fractions; never goes back. */
  readonly elapsed: () => number;
  /** Takes a span that is over. */
  readonly onEnd: (span: SpanRecord) => void;
}

/** Where a span is in its trace. */
export interface SpanPlace {
  /** 32 digits of lower-case hexadecimal. */
  readonly traceId: string;
  /** 16 such digits. */
  readonly spanId: string;
  /** `tracestate` as the caller of the trace sent it; empty for none. */
  readonly state: string;
}

/** The span above another one. */
export interface SpanAbove {
  readonly spanId: string;
  /** It belongs to another service. */
  readonly isRemote: boolean;
}

/** What a span begins with. */
export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKindNumber;
  readonly attributes: Attributes;
  readonly place: SpanPlace;
  /** Absent for none. */
  readonly above: SpanAbove | undefined;
  /**
   * Milliseconds between `elapsed` and the Unix epoch. Spans of one call have one, so that they stay nested
   * when the wall clock is set.
   */
  readonly epochMs: number;
}

/**
 * A span while its work goes on: as little as can be, because decisions wait for it. The thread that
 * exports it makes a span of the SDK of it.
 */
export class SpanRecord {
  readonly start: SpanStart;
  readonly startedAt: number;
  readonly attributes: Attributes;
  /** When the work was over; when it began, while it goes on. */
  endedAt: number;
  failed = false;
  /** What the work failed of; absent where nothing is known of it. */
  failure: string | undefined;
  ended = false;
  readonly #origin: SpanOrigin;

  constructor(origin: SpanOrigin, start: SpanStart) {
    this.#origin = origin;
    this.start = start;
    this.attributes = { ...start.attributes };
    this.startedAt = origin.elapsed();
    this.endedAt = this.startedAt;
    this.failure = undefined;
  }

  /** Notes something about the work. */
  set(name: string, value: AttributeValue): void {
    this.attributes[name] = value;
  }

  /** The work went wrong, with this text where there is one. */
  fail(message?: string): void {
    this.failed = true;
    this.failure = message;
  }

  /** The work is over, and the span on its way. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.endedAt = this.#origin.elapsed();
    this.#origin.onEnd(this);
  }
}
