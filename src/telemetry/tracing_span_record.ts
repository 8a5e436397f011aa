import type { Attributes, AttributeValue } from "@opentelemetry/api";
import type { RateLimitRequest } from "../ratelimit/request.ts";

/** Kinds of spans, with the numbers of the SDK. */
export const SPAN_KINDS = { internal: 0, server: 1, client: 2 } as const;

/** The name, kind and attributes that spans of one kind of work share; one object for all of them. */
export interface SpanShape {
  readonly name: string;
  readonly kind: typeof SPAN_KINDS[keyof typeof SPAN_KINDS];
  readonly attributes?: Attributes;
}

/** The clock and the target of all spans of a process. */
export interface SpanOrigin {
  /** Milliseconds since some moment, with fractions; never goes back. */
  readonly elapsed: () => number;
  /** Takes an ended span. */
  readonly onEnd: (span: SpanRecord) => void;
}

/** The start of a span. */
interface SpanStart {
  readonly shape: SpanShape;
  /** 32 lower-case hexadecimal digits; empty for that of the parent, or a new one without a parent. */
  readonly traceId: string;
  /** `tracestate` as it is passed on; empty for none. */
  readonly state: string;
  /** The parent, where it is a span of this process. */
  readonly parent: SpanRecord | undefined;
  /** Id of a parent in another service; empty for none. */
  readonly remoteParentId: string;
  /**
   * Milliseconds from `elapsed` to the Unix epoch. Spans of one call share it, so that they stay nested
   * when the wall clock is set.
   */
  readonly epochMs: number;
  /** When the work began, by `elapsed`. */
  readonly startedAt: number;
}

/** The value of an attribute; a request becomes its text in the exporting thread. */
export type SpanValue = AttributeValue | RateLimitRequest;

/**
 * A span until it is packed. It does as little as possible, because decisions wait for it: even its ids are
 * created when it is packed.
 */
export class SpanRecord {
  readonly start: SpanStart;
  /** When the work ended; when it began, while it runs. */
  endedAt: number;
  failed = false;
  /** Why the work failed; absent where that is unknown. */
  failure: string | undefined = undefined;
  ended = false;
  readonly #origin: SpanOrigin;
  readonly #attributes: { readonly key: string; readonly value: SpanValue }[] = [];
  #traceId: string;
  #spanId = "";

  constructor(origin: SpanOrigin, start: SpanStart) {
    this.#origin = origin;
    this.start = start;
    this.endedAt = start.startedAt;
    this.#traceId = start.traceId;
  }

  /** 32 lower-case hexadecimal digits. */
  get traceId(): string {
    if (this.#traceId === "") this.#traceId = this.start.parent?.traceId ?? newTraceId();
    return this.#traceId;
  }

  /** 16 such digits. */
  get spanId(): string {
    if (this.#spanId === "") this.#spanId = newSpanId();
    return this.#spanId;
  }

  /** Id of the parent; empty for none. */
  get parentId(): string {
    return this.start.parent?.spanId ?? this.start.remoteParentId;
  }

  /** The attributes in addition to those of the shape. */
  get attributes(): readonly { readonly key: string; readonly value: SpanValue }[] {
    return this.#attributes;
  }

  /** Adds an attribute; at most once for each key. */
  set(key: string, value: SpanValue): void {
    this.#attributes.push({ key, value });
  }

  /** Marks the work as failed, with the reason where there is one. */
  fail(message?: string): void {
    this.failed = true;
    this.failure = message;
  }

  /** Ends the span and hands it on; further calls do nothing. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.endedAt = this.#origin.elapsed();
    this.#origin.onEnd(this);
  }
}

/** Random bytes are fetched many at a time, because a fetch costs about the same for one and for many. */
const pool = new Uint8Array(1_024);
const ALL_ZERO = /^0+$/;
let digits = "";
let used = 0;

/** A new trace id: 32 lower-case hexadecimal digits, not all zero. */
export function newTraceId(): string {
  return randomHex(32);
}

/** A new span id: 16 such digits. */
export function newSpanId(): string {
  return randomHex(16);
}

function randomHex(length: number): string {
  if (used + length > digits.length) {
    digits = crypto.getRandomValues(pool).toHex();
    used = 0;
  }
  const text = digits.slice(used, used + length);
  used += length;
  return text.startsWith("0") && ALL_ZERO.test(text) ? randomHex(length) : text;
}
