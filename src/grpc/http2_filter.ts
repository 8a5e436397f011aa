import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import type { AcceptedSocket } from "./listener.ts";
import { BlockReader, type BlockTaker } from "./native/block_reader.ts";
import { ConnectionError, encodeFrame, FLAG, FRAME, FrameReader, PREFACE } from "./native/frames.ts";
import { literalBlock } from "./native/hpack_encoder.ts";
import type { HeaderField } from "./native/hpack_decoder.ts";
import { LIMITS } from "./native/limits.ts";
import { RateGuard } from "./native/rate_guard.ts";
import { MAX_TRACE_FIELDS, USED_HEADERS } from "./native/request_head.ts";
import { TRACE_HEADERS } from "../base/trace_context.ts";

/** Size of the fields that are passed on, which then fit into one frame. */
const MAX_KEPT_BYTES = 15_000;
/** The part of it for headers of a trace, which a proxy copies from its clients. */
const MAX_TRACE_BYTES = 5_000;
const TRACE: ReadonlySet<string> = new Set(TRACE_HEADERS);
/** Maximum number of remembered streams whose request goes on; a few end here before it does. */
const MAX_INCOMPLETE = 2 * LIMITS.streams;
/** Cost of a literal field in addition to its bytes. */
const MAX_FIELD_OVERHEAD = 8;
const VISIBLE = /^[\x20-\x7e]*$/;

/** Number of resets that are passed on. `node:http2` closes the connection after a burst of 1,000 and then 33 per second. */
const RESETS = { burst: 500, perSecond: 20 };

/** Reports of a filter, and its time. */
interface Http2FilterOptions {
  readonly onLongHeaders: (bytes: number) => void;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
}

/**
 * The same connection without what a client of a proxy can cause and `node:http2` answers with an error: it resets a call
 * with more than 128 fields, closes the connection for a value of more than 64 KiB or a block of nine frames, and for
 * many resets. None of these limits can be set.
 */
export function filteredSocket(socket: AcceptedSocket, options: Http2FilterOptions): Duplex {
  const filter = new Http2Filter(options);
  const duplex = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, () => done()),
    final: (done) => void socket.end(() => done()),
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  socket.on("data", (chunk: Uint8Array) => {
    const passed = filter.pass(chunk);
    if (passed === undefined) socket.destroy();
    else if (passed.length > 0 && !duplex.push(passed)) socket.pause();
  });
  socket.on("end", () => duplex.push(null));
  socket.on("error", () => {});
  socket.on("close", () => duplex.destroy());
  return duplex;
}

/**
 * Filters what a client sends: of header blocks the fields that are used, and of resets as many as are allowed. A call
 * whose reset is left out ends with its answer.
 */
class Http2Filter {
  readonly #options: Http2FilterOptions;
  readonly #frames: FrameReader;
  readonly #fields = new UsedFields();
  readonly #blocks = new BlockReader(this.#fields);
  /** The first bytes of a client that may not speak HTTP/2; undefined once it is known that it does. */
  #first: Uint8Array[] | undefined = [];
  /** Nothing is rewritten: it is not HTTP/2, and `node:http2` answers it. */
  #isRaw = false;
  #out: Uint8Array[] = [];
  readonly #resets: RateGuard;
  /** Streams whose request goes on. */
  readonly #incomplete = new Set<number>();

  constructor(options: Http2FilterOptions) {
    this.#options = options;
    this.#resets = new RateGuard(RESETS, options.now());
    this.#frames = new FrameReader({
      take: (...frame) => this.#frame(...frame),
      takeCall: (_bytes, at) => at,
      goesOn: () => true,
    });
  }

  /** The part of a chunk that is passed on; undefined if the connection is to be closed. */
  pass(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isRaw) return chunk;
    this.#first?.push(chunk.slice());
    try {
      this.#frames.read(chunk, this.#options.now());
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (this.#first === undefined) return undefined;
      this.#isRaw = true;
      return Buffer.concat(this.#first);
    }
    return Buffer.concat(this.#out.splice(0));
  }

  #frame(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (this.#first !== undefined) {
      this.#first = undefined;
      this.#out.push(PREFACE);
    }
    if (this.#blocks.isOpen && type !== FRAME.CONTINUATION) {
      throw new ConnectionError("PROTOCOL_ERROR", "a header block is interrupted");
    }
    if (type === FRAME.RST_STREAM && !this.#incomplete.delete(streamId) && !this.#resets.allows(now)) {
      // A reset that is left out does not count.
      return this.#resets.earn(1);
    }
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    if (type === FRAME.HEADERS && !isLast) this.#goesOn(streamId);
    if ((type === FRAME.HEADERS || type === FRAME.DATA) && isLast) this.#incomplete.delete(streamId);
    if (type === FRAME.HEADERS) this.#blocks.begin(flags, streamId, payload);
    else if (type === FRAME.CONTINUATION) this.#blocks.continue(flags, streamId, payload);
    else return void this.#out.push(encodeFrame(type, payload, { flags, streamId }));
    if (this.#blocks.isOpen) return;
    if (this.#blocks.length > LIMITS.usualBlockBytes) this.#options.onLongHeaders(this.#blocks.length);
    this.#blocks.decode();
    const end = this.#blocks.endsStream ? FLAG.END_STREAM : 0;
    const block = literalBlock(this.#fields.list);
    this.#out.push(encodeFrame(FRAME.HEADERS, block, { flags: FLAG.END_HEADERS | end, streamId }));
  }

  /** The request of a stream goes on after its headers. */
  #goesOn(streamId: number): void {
    this.#incomplete.add(streamId);
    if (this.#incomplete.size <= MAX_INCOMPLETE) return;
    const [oldest] = this.#incomplete;
    if (oldest !== undefined) this.#incomplete.delete(oldest);
  }
}

/** The fields of a block that are passed on. */
class UsedFields implements BlockTaker {
  list: HeaderField[] = [];
  #bytes = 0;
  #traceFields = 0;
  #traceBytes = 0;

  begin(): void {
    this.list = [];
    this.#bytes = 0;
    this.#traceFields = 0;
    this.#traceBytes = 0;
  }

  keeps(name: string): boolean {
    return USED_HEADERS.has(name);
  }

  take(name: string, value: string): void {
    // The library writes a line for each value that it cannot read.
    if (!VISIBLE.test(value)) return;
    const bytes = name.length + value.length + MAX_FIELD_OVERHEAD;
    if (TRACE.has(name)) {
      this.#traceFields++;
      this.#traceBytes += bytes;
      // Otherwise they would leave no room for the headers of the call.
      if (this.#traceFields > MAX_TRACE_FIELDS || this.#traceBytes > MAX_TRACE_BYTES) return;
    }
    this.#bytes += bytes;
    if (this.#bytes <= MAX_KEPT_BYTES) this.list.push([name, value]);
  }
}
