import { BlockReader, type BlockTaker } from "../native/block_reader.ts";
import { StreamError } from "../native/frames.ts";
import { type CallStatus, httpStatus, localStatus, sentStatus } from "./call_status.ts";

/** The size of the fields of one block, and of one of them. */
export const HEADER_LIMITS = { headerListBytes: 65_536, headerTextBytes: 16_384 };

/** A header block of an answer. Answers with equal blocks may share it. */
interface ResponseBlock {
  /** `:status`; absent in trailers. */
  readonly httpStatus: number | undefined;
  /** Why the answer is not gRPC; absent for one that is, and for trailers. */
  readonly refusal: CallStatus | undefined;
  /** From `grpc-status`; absent without one. */
  readonly status: CallStatus | undefined;
  /** `grpc-encoding`; empty for none. */
  readonly encoding: string;
}

/** A block that left the table alone. */
interface KnownBlock {
  readonly bytes: Uint8Array;
  readonly block: ResponseBlock;
  readonly changes: number;
}

/** Reads the header blocks of the answers on one connection. */
export class ResponseReader {
  readonly #fields = new FieldList();
  readonly blocks = new BlockReader(this.#fields, HEADER_LIMITS);
  /** The last blocks that began and ended an answer: most answers are alike. */
  #head: KnownBlock | undefined;
  #trailers: KnownBlock | undefined;

  /** The block between two positions, if an answer began with the same one and the table has not changed since. */
  knownHead(bytes: Uint8Array, start: number, end: number): ResponseBlock | undefined {
    return this.#same(this.#head, bytes, start, end);
  }

  /** The same for the trailers of an answer. */
  knownTrailers(bytes: Uint8Array, start: number, end: number): ResponseBlock | undefined {
    return this.#same(this.#trailers, bytes, start, end);
  }

  /** The block that just ended, at the begin of an answer. Throws `StreamError` for one that HTTP/2 forbids. */
  head(): ResponseBlock {
    const known = this.#known(this.#head);
    if (known !== undefined) return known;
    const read = this.#read();
    const { httpStatus, refusal } = read.block;
    if (httpStatus === undefined && refusal === undefined) throw this.#error("headers without :status");
    this.#head = read.known;
    return read.block;
  }

  /** The block that just ended, at the end of an answer. Throws `StreamError` for one that HTTP/2 forbids. */
  trailers(): ResponseBlock {
    const known = this.#known(this.#trailers);
    if (known !== undefined) return known;
    const read = this.#read();
    if (read.block.httpStatus !== undefined) throw this.#error("trailers with :status");
    this.#trailers = read.known;
    return read.block;
  }

  /** Decodes the block that just ended and ignores it: it may change the table. */
  skip(): void {
    this.blocks.decode();
  }

  #known(known: KnownBlock | undefined): ResponseBlock | undefined {
    const { whole } = this.blocks;
    return whole === undefined ? undefined : this.#same(known, whole, 0, whole.length);
  }

  #same(known: KnownBlock | undefined, from: Uint8Array, start: number, end: number) {
    if (known === undefined || known.changes !== this.blocks.changes) return undefined;
    const { bytes, block } = known;
    const length = end - start;
    if (bytes.length !== length) return undefined;
    let index = 0;
    while (index < length && bytes[index] === from[start + index]) index++;
    return index === length ? block : undefined;
  }

  #read(): { readonly block: ResponseBlock; readonly known: KnownBlock | undefined } {
    const { blocks } = this;
    const { whole, changes } = blocks;
    blocks.decode();
    if (blocks.overflowed) return { block: OVERFLOWED_BLOCK, known: undefined };
    if (this.#fields.fault !== undefined) throw this.#error(this.#fields.fault);
    const block = blockOf(this.#fields.values);
    const isKnown = whole !== undefined && blocks.changes === changes;
    return { block, known: isKnown ? { bytes: whole.slice(), block, changes } : undefined };
  }

  #error(text: string): StreamError {
    return new StreamError("PROTOCOL_ERROR", this.blocks.streamId, text);
  }
}

/** The fields of one block; equal names are joined as HTTP does. */
class FieldList implements BlockTaker {
  values = new Map<string, string>();
  fault: string | undefined;

  begin(): void {
    this.values = new Map();
    this.fault = undefined;
  }

  keeps(name: string): boolean {
    const isPseudo = name.startsWith(":");
    if (isPseudo && (name !== ":status" || this.values.size > 0)) this.fault ??= "a wrong pseudo-header";
    if (/[A-Z]/.test(name)) this.fault ??= "a header name in upper case";
    return true;
  }

  take(name: string, value: string): void {
    const before = this.values.get(name);
    this.values.set(name, before === undefined ? value : `${before},${value}`);
  }
}

const TOO_LARGE = localStatus("RESOURCE_EXHAUSTED", "the headers of the answer are too large");
const OVERFLOWED_BLOCK: ResponseBlock = {
  httpStatus: undefined,
  refusal: TOO_LARGE,
  status: TOO_LARGE,
  encoding: "",
};

/** Fields that callers do not need. */
const OWN_FIELDS = new Set([
  ...[":status", "content-type", "grpc-status", "grpc-message", "grpc-encoding", "grpc-accept-encoding"],
]);

function blockOf(values: ReadonlyMap<string, string>): ResponseBlock {
  const code = values.get(":status");
  const number = values.get("grpc-status");
  const contentType = values.get("content-type") ?? "";
  const http = code === undefined ? undefined : /^\d{3}$/.test(code) ? Number(code) : 0;
  const isGrpc = http === 200 && /^application\/grpc(?:$|[+;])/.test(contentType);
  const metadata = new Map([...values].filter(([name]) => !OWN_FIELDS.has(name)));
  return {
    httpStatus: http,
    refusal: http === undefined || isGrpc ? undefined : httpStatus(http, contentType),
    status: number === undefined ? undefined : sentStatus(number, values.get("grpc-message") ?? "", metadata),
    encoding: values.get("grpc-encoding") ?? "",
  };
}
