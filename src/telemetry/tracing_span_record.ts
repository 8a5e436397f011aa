import type { Attributes, AttributeValue } from "@opentelemetry/api";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { type AttributeKey, attributesText } from "./tracing_attribute_text.ts";
import { newSpanId, newTraceId } from "./tracing_span_ids.ts";

/** What a span does for its caller, by the numbers that OTLP has for it. */
export const SPAN_KINDS = { internal: 1, server: 2, client: 3 } as const;

/** One of those numbers. */
export type SpanKindNumber = typeof SPAN_KINDS[keyof typeof SPAN_KINDS];

/** What the spans of one kind of work have in common, rendered once for all of them. */
export interface SpanShape {
  /** It has attributes of its own, behind which those of a span come. */
  readonly hasAttributes: boolean;
  /** The beginning of OTLP's JSON, up to the list of attributes, which is left open. What is empty is left out. */
  readonly text: string;
}

/** What every span of a process has in common. */
export interface SpanOrigin {
  /** Milliseconds since some moment, with fractions; never goes back. */
  readonly elapsed: () => number;
  /** Takes a span that is over. */
  readonly onEnd: (span: SpanRecord) => void;
}

/** What a span begins with. */
export interface SpanStart {
  readonly shape: SpanShape;
  /** 32 digits of lower-case hexadecimal; empty for that of the span above, or a new one where none is. */
  readonly traceId: string;
  /** 16 such digits; empty for new ones. */
  readonly spanId: string;
  /** `tracestate` as it is passed on; empty for none. */
  readonly state: string;
  /** The span above, where it is one of ours. */
  readonly above?: SpanRecord | undefined;
  /** Id of the span above where that is all that is known of it; empty for none. */
  readonly aboveId: string;
  /** The span above belongs to another service. */
  readonly isRemote: boolean;
  /**
   * Milliseconds between `elapsed` and the Unix epoch. Spans of one call have one, so that they stay nested
   * when the wall clock is set.
   */
  readonly epochMs: number;
  /** When the work began, as `elapsed` had it. */
  readonly startedAt: number;
}

/** The shape of spans with this name and kind, and with attributes that are the same for all of them. */
export function spanShape(name: string, kind: SpanKindNumber, attributes: Attributes = {}): SpanShape {
  const shared = attributesText(attributes);
  const text = `{"name":${JSON.stringify(name)},"kind":${kind},"attributes":[${shared}`;
  return { hasAttributes: shared !== "", text };
}

/** What is noted; a request becomes its text when the span is rendered. */
export type NotedValue = AttributeValue | RateLimitRequest;

/** An attribute as it was noted. */
export interface Note {
  readonly key: AttributeKey;
  readonly value: NotedValue;
}

/**
 * A span from its begin until it is sent: as little as can be, because decisions wait for it. Few calls are
 * traced, so what is done for one finds the caches of the CPU cold. All that can wait does, identifiers as
 * well, until many spans are packed one after the other.
 */
export class SpanRecord {
  readonly start: SpanStart;
  /** When the work was over; when it began, while it goes on. */
  endedAt: number;
  failed = false;
  /** What the work failed of; absent where nothing is known of it. */
  failure: string | undefined = undefined;
  ended = false;
  readonly #origin: SpanOrigin;
  readonly #notes: Note[] = [];
  #traceId: string;
  #spanId: string;

  constructor(origin: SpanOrigin, start: SpanStart) {
    this.#origin = origin;
    this.start = start;
    this.endedAt = start.startedAt;
    this.#traceId = start.traceId;
    this.#spanId = start.spanId;
  }

  /** 32 digits of lower-case hexadecimal. */
  get traceId(): string {
    if (this.#traceId === "") this.#traceId = this.start.above?.traceId ?? newTraceId();
    return this.#traceId;
  }

  /** 16 such digits. */
  get spanId(): string {
    if (this.#spanId === "") this.#spanId = newSpanId();
    return this.#spanId;
  }

  /** Id of the span above; empty for none. */
  get aboveId(): string {
    return this.start.above?.spanId ?? this.start.aboveId;
  }

  /** The attributes that were noted. */
  get notes(): readonly Note[] {
    return this.#notes;
  }

  /** Notes something about the work, once for each key. */
  set(key: AttributeKey, value: NotedValue): void {
    this.#notes.push({ key, value });
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
