import { Buffer } from "node:buffer";
import { Fifo } from "../base/fifo.ts";
import type {
  Assignment,
  BucketUsage,
  QuotaReport,
  QuotaStream,
  QuotaStreams,
} from "../quota/quota_stream.ts";
import type { Entry } from "../ratelimit/request.ts";
import {
  decodeBucketId,
  decodeQuotaReport,
  encodeQuotaAssignment,
  QuotaResponseWriter,
  type WireStrategy,
} from "../wire/rlqs.ts";
import {
  type BidiCall,
  type BidiPeer,
  type CallContext,
  decodeRequest,
  GrpcError,
  type GrpcService,
} from "./grpc_service.ts";
import { CLIENT_HEADER, DIRECT_HEADER } from "./native/request_head.ts";

/** Receives faults of clients. Methods neither wait nor throw. */
interface QuotaGrpcOptions {
  /** The streams, or why this service has none. */
  readonly streams: QuotaStreams | { readonly unavailable: string };
  /** A stream that is refused or ended, for a reason that is not the end of the service. */
  readonly onRefused: (reason: string) => void;
  readonly onReport: () => void;
  /** An assignment that is sent, or the order to forget a bucket. */
  readonly onAssignment: () => void;
  /** A message that is not valid protobuf, whose stream ends. */
  readonly onMalformed: () => void;
  /** A report that is skipped, because too many of its stream wait. */
  readonly onSkipped: () => void;
}

const MAX_NAME_CHARS = 256;
/** Fits a report of 10,000 buckets whose ids have 1,024 bytes. */
const MAX_REPORT_BYTES = 12 * 1_048_576;
/** Reports of one stream that wait, in messages and in bytes. */
const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 2 * MAX_REPORT_BYTES;
/** Assignments wait in a table, in which a later one replaces an earlier one, while the client leaves this unread. */
const MAX_UNSENT_BYTES = 524_288;
const MESSAGE_BYTES = 65_536;
/** Of an assignment without its bucket; the longest has about 40. */
const ASSIGNMENT_BYTES = 48;

/** The service `envoy.service.rate_limit_quota.v3.RateLimitQuotaService`. */
export function createQuotaGrpcService(options: QuotaGrpcOptions): GrpcService {
  return {
    name: "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
    methods: [{
      kind: "bidi",
      name: "StreamRateLimitQuotas",
      maxMessageBytes: MAX_REPORT_BYTES,
      open: (peer, call) => {
        const { streams } = options;
        if ("unavailable" in streams) {
          options.onRefused(streams.unavailable);
          throw new GrpcError("UNIMPLEMENTED", streams.unavailable);
        }
        return new QuotaCall(peer, streams, call, options);
      },
    }],
  };
}

/** One stream of reports: takes them one after the other, and sends assignments. */
class QuotaCall implements BidiCall {
  readonly #peer: BidiPeer;
  readonly #options: QuotaGrpcOptions;
  readonly #stream: QuotaStream;
  readonly #waiting = new Fifo<QuotaReport & { readonly bytes: number }>();
  #waitingBytes = 0;
  #isBusy = false;
  /** Assignments that are not sent, by bucket. */
  readonly #unsent = new Map<string, Assignment>();

  constructor(peer: BidiPeer, streams: QuotaStreams, call: CallContext, options: QuotaGrpcOptions) {
    const name = call.header(CLIENT_HEADER);
    // A proxy would confirm what has not arrived yet.
    const isDirect = call.header(DIRECT_HEADER) === "true";
    this.#peer = peer;
    this.#options = options;
    this.#stream = streams.open({
      name: name === undefined || name === "" ? undefined : name.slice(0, MAX_NAME_CHARS),
      actions: {
        send: (id, assignment) => void this.#unsent.set(id, assignment),
        flush: () => this.#flush(),
        confirm: (arrived) => isDirect && this.#unsent.size === 0 && peer.confirm(arrived),
      },
      end: (refusal) => {
        if (refusal !== undefined && refusal.code !== "UNAVAILABLE") options.onRefused(refusal.message);
        peer.end(refusal === undefined ? undefined : new GrpcError(refusal.code, refusal.message));
      },
    });
  }

  receive(message: Uint8Array): void {
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes + message.length > MAX_WAITING_BYTES) {
      this.#options.onSkipped();
      return;
    }
    this.#options.onReport();
    const arrivedAt = this.#stream.now();
    this.#waiting.push({ ...this.#read(message), arrivedAt, bytes: message.length });
    this.#waitingBytes += message.length;
    if (!this.#isBusy) void this.#takeAll();
  }

  ended(): void {
    this.#stream.end();
    this.#unsent.clear();
  }

  async #takeAll(): Promise<void> {
    this.#isBusy = true;
    try {
      for (let report = this.#waiting.shift(); report !== undefined; report = this.#waiting.shift()) {
        this.#waitingBytes -= report.bytes;
        await this.#stream.report(report);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  #read(message: Uint8Array): QuotaReport {
    try {
      const { domain, usages } = decodeRequest(decodeQuotaReport, message);
      const whole = Buffer.from(message.buffer, message.byteOffset, message.length);
      return { domain, usages: { [Symbol.iterator]: () => bucketUsages(usages, whole) } };
    } catch (error) {
      this.#options.onMalformed();
      throw error;
    }
  }

  #flush(): boolean {
    const unsent = this.#unsent;
    while (unsent.size > 0 && this.#peer.unsentBytes < MAX_UNSENT_BYTES) {
      const writer = new QuotaResponseWriter();
      let bytes = 0;
      for (const [id, assignment] of unsent) {
        unsent.delete(id);
        this.#options.onAssignment();
        writer.add(Buffer.from(id, "latin1"), bytesOf(assignment));
        bytes += id.length + ASSIGNMENT_BYTES;
        if (bytes >= MESSAGE_BYTES) break;
      }
      this.#peer.send(writer.finish());
    }
    return unsent.size === 0;
  }
}

function* bucketUsages(
  usages: ReturnType<typeof decodeQuotaReport>["usages"],
  whole: Buffer,
): Generator<BucketUsage, void> {
  for (const { id, allowed, denied, elapsedSeconds } of usages) {
    const start = id.byteOffset - whole.byteOffset;
    const text = id.length === 0 ? "" : whole.toString("latin1", start, start + id.length);
    yield {
      id: text,
      allowed,
      denied,
      elapsedSeconds,
      pairs: (): readonly Entry[] | undefined => decodeBucketId(id),
    };
  }
}

/** Encoded assignments; undefined to abandon a bucket. */
const KNOWN_BYTES = new WeakMap<Assignment, Uint8Array>();

function bytesOf(assignment: Assignment): Uint8Array | undefined {
  if (assignment.kind === "abandon") return undefined;
  const known = KNOWN_BYTES.get(assignment);
  if (known !== undefined) return known;
  const bytes = encodeQuotaAssignment({
    timeToLiveSeconds: assignment.seconds,
    strategy: strategyOf(assignment),
    // Otherwise a part of a large buffer.
  }).slice();
  KNOWN_BYTES.set(assignment, bytes);
  return bytes;
}

function strategyOf(assignment: Exclude<Assignment, { readonly kind: "abandon" }>): WireStrategy {
  if (assignment.kind !== "tokens") return { kind: assignment.kind === "deny" ? "deny_all" : "allow_all" };
  const { maxTokens, tokens, fillSeconds, fillNanos } = assignment;
  return { kind: "token_bucket", maxTokens, tokensPerFill: tokens, fillSeconds, fillNanos };
}
