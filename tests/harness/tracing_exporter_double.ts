import type { SpanPack } from "../../src/telemetry/tracing_span_pack.ts";
import { SPAN_KINDS, SpanRecord, type SpanShape } from "../../src/telemetry/tracing_span_record.ts";
import type { WorkerNotice } from "../../src/base/supervised_worker.ts";
import type {
  ExporterHandle,
  FromExporter,
  ToExporter,
} from "../../src/telemetry/tracing_export_supervisor.ts";
import { exportedAll } from "./tracing_bed.ts";

/** A worker that exports nothing: a test sends its messages, and sees those that it received. */
export class ExporterDouble implements ExporterHandle {
  /** The kinds of message that it received. */
  readonly received: ToExporter["type"][] = [];
  readonly packs: SpanPack[] = [];
  isTerminated = false;
  onmessage: ExporterHandle["onmessage"] = null;
  onmessageerror: ExporterHandle["onmessageerror"] = null;
  onerror: ExporterHandle["onerror"] = null;
  readonly #answers: Partial<Record<ToExporter["type"], FromExporter | WorkerNotice>>;

  constructor(answers: Partial<Record<ToExporter["type"], FromExporter | WorkerNotice>> = ALIVE) {
    this.#answers = answers;
  }

  postMessage(message: ToExporter): void {
    this.received.push(message.type);
    if (message.type === "spans") this.packs.push(structuredClone(message.pack));
    const answer = this.#answers[message.type];
    if (answer !== undefined) queueMicrotask(() => this.send(answer));
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** Sends a message to the main thread. */
  send(message: FromExporter | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }

  /** Fails as a worker does; returns whether the process would have ended. */
  fail(message: string): boolean {
    const event = new ErrorEvent("error", { message, error: new Error(message), cancelable: true });
    this.onerror?.(event);
    return !event.defaultPrevented;
  }
}

/** Answers of a working worker. */
export const ALIVE = {
  start: { type: "ready" },
  spans: { type: "taken" },
  stop: { type: "stopped" },
} as const satisfies Partial<Record<ToExporter["type"], FromExporter | WorkerNotice>>;

/** The same without receipts for spans. */
export const DEAF = { start: ALIVE.start, stop: ALIVE.stop } as const;

/** A span with this name and nothing else. */
export function spanNamed(name: string): SpanRecord {
  return spanOf({ name, kind: SPAN_KINDS.server });
}

/** A span of this shape, whatever else is given, and nothing else. */
export function spanOf(
  shape: SpanShape,
  given: Partial<SpanRecord["start"]> = {},
  origin: ConstructorParameters<typeof SpanRecord>[0] = { elapsed: () => 0, onEnd: () => {} },
): SpanRecord {
  const ids = { traceId: "1".repeat(32), state: "", parent: undefined, remoteParentId: "" };
  return new SpanRecord(origin, { shape, ...ids, epochMs: 0, startedAt: 0, ...given });
}

/** The names of the spans in a pack. */
export function namesIn(pack: SpanPack): string[] {
  return exportedAll(pack).map(({ name }) => name);
}
