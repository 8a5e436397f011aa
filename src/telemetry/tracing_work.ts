import { newSpanId } from "./tracing_span_ids.ts";
import { SPAN_KINDS, type SpanOrigin, SpanRecord, spanShape } from "./tracing_span_record.ts";

/** Work that is over and was done in another thread. */
export interface TracedWork {
  readonly name: string;
  readonly kind: "internal" | "client";
  /** The UUID of what the work belongs to; all work on it is one trace. */
  readonly id: string;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** What went wrong; absent where nothing did. */
  readonly failure?: string | undefined;
}

/** How such work is chosen, and who takes its spans. */
export interface RecordWorkOptions extends Pick<SpanOrigin, "onEnd"> {
  /** Share of the traces that are kept, 0 to 1. */
  readonly samplingRate: number;
}

const CHOOSING_DIGITS = 8;

/** Makes the span of work that is over. Whether it is kept depends on the identifier alone: all of a trace or nothing. */
export function recordWork(work: TracedWork, { samplingRate, onEnd }: RecordWorkOptions): void {
  const traceId = work.id.replaceAll("-", "");
  const chance = Number.parseInt(traceId.slice(-CHOOSING_DIGITS), 16) / 16 ** CHOOSING_DIGITS;
  if (!(chance < samplingRate)) return;
  const span = new SpanRecord({ elapsed: () => work.tookMs, onEnd }, {
    shape: spanShape(work.name, SPAN_KINDS[work.kind], work.attributes),
    traceId,
    spanId: newSpanId(),
    state: "",
    aboveId: "",
    isRemote: false,
    epochMs: work.startedAt,
    startedAt: 0,
  });
  if (work.failure !== undefined) span.fail(work.failure);
  span.end();
}
