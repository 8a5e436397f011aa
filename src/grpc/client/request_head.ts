import { pushInteger, pushText } from "../native/hpack_encoder.ts";
import type { HeaderField } from "../native/hpack_decoder.ts";

/** The headers of calls that are alike, and the block of each connection. Create it once for many calls. */
export interface RequestHead {
  readonly fields: readonly HeaderField[];
}

/** Options of `requestHead`. */
interface RequestHeadOptions {
  /** Such as `/package.Service/Method`. */
  readonly path: string;
  readonly authority: string;
  readonly scheme: "http" | "https";
}

/** A part of a head, of a length that leaves room for metadata in the same frame. */
const HEAD_VALUE = /^[!-~]{1,2048}$/;

/** The headers of every gRPC call of a method. Throws a `TypeError` for a path or authority that cannot be sent. */
export function requestHead({ path, authority, scheme }: RequestHeadOptions): RequestHead {
  for (const [name, value] of [["path", path], ["authority", authority]] as const) {
    if (HEAD_VALUE.test(value)) continue;
    throw new TypeError(
      `Cannot call ${name} ${JSON.stringify(value)}: expected up to 2048 visible ASCII characters`,
    );
  }
  return {
    fields: [
      [":method", "POST"],
      [":scheme", scheme],
      [":path", path],
      [":authority", authority],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
      ["grpc-accept-encoding", "identity,deflate,gzip"],
      ["user-agent", "grpc-weir"],
    ],
  };
}

/** Largest metadata of a call, each field plus 32 bytes: servers usually allow 8 KiB of headers. */
const MAX_METADATA_BYTES = 8_192;
const NAME = /^[0-9a-z_.-]+$/;
const VALUE = /^[ -~]*$/;
const BASE64 = /^[0-9A-Za-z+/]*={0,2}$/;
/** Headers that gRPC sets itself, or HTTP/2 forbids. */
const RESERVED =
  /^(?:grpc-.*|te|host|connection|keep-alive|proxy-connection|upgrade|transfer-encoding|http2-settings|content-type|user-agent)$/;

/**
 * Checks the metadata of a call: names in lower case, values in visible ASCII; values of names that end with `-bin` in
 * base64. Throws a `TypeError` with the name of one that cannot be sent, and without its value.
 */
export function checkMetadata(metadata: Iterable<HeaderField>): void {
  let size = 0;
  for (const [name, value] of metadata) {
    const state = !NAME.test(name)
      ? "expected a name of lower case letters, digits, - . _"
      : RESERVED.test(name)
      ? "it belongs to the call itself"
      : !VALUE.test(value)
      ? "expected a value in visible ASCII characters"
      : name.endsWith("-bin") && !BASE64.test(value)
      ? "expected a value in base64"
      : undefined;
    if (state !== undefined) throw new TypeError(`Cannot send metadata ${JSON.stringify(name)}: ${state}`);
    size += name.length + value.length + ENTRY_OVERHEAD;
  }
  if (size > MAX_METADATA_BYTES) {
    throw new TypeError(`Cannot send metadata of ${size} bytes: at most ${MAX_METADATA_BYTES} are allowed`);
  }
}

/** A `grpc-timeout` of at most 8 digits, rounded up; a call without time left gets the shortest. */
export function timeoutText(ms: number): string {
  for (const [unit, unitMs] of [["m", 1], ["S", 1_000], ["M", 60_000], ["H", 3_600_000]] as const) {
    const count = Math.max(1, Math.ceil(ms / unitMs));
    if (count < 1e8) return `${count}${unit}`;
  }
  return "99999999H";
}

const STATIC: ReadonlyMap<string, number> = new Map([
  [":method POST", 3],
  [":scheme http", 6],
  [":scheme https", 7],
]);
/** The first index of the dynamic table, and the size that RFC 7541 adds to each entry. */
const FIRST_ENTRY = 62;
const ENTRY_OVERHEAD = 32;
const TABLE_BYTES = 4_096;
const INDEXED = 0x80;
const LITERAL_INDEXED = 0x40;
const TABLE_SIZE = 0x20;
const NEVER_INDEXED = 0x10;

/** A block that has no effect on the table, as long as that has so many entries. */
interface KnownHead {
  readonly head: RequestHead;
  readonly block: Uint8Array;
  readonly entries: number;
}

/**
 * Encodes the header blocks of one connection. The fields of heads fill the table of the peer, and are sent as their
 * indices from then on. Entries are never evicted; fields that do not fit are literals. So is the metadata of a call,
 * which is never indexed because it may be secret.
 */
export class HeadEncoder {
  /** Fields in the order in which they entered the table. */
  readonly #entries = new Map<string, number>();
  #room = TABLE_BYTES;
  #limit = TABLE_BYTES;
  /** A smaller table that the peer must be shown before the next field. */
  #resize: number | undefined;
  #known = new WeakMap<RequestHead, KnownHead>();
  /** The one that was asked for last. */
  #last: KnownHead | undefined;

  /** The peer sets the size of its table. */
  limitTable(bytes: number): void {
    if (bytes >= this.#limit) return;
    // Evicts everything: it is simpler than to know what is left, and happens before the first call.
    this.#entries.clear();
    this.#limit = bytes;
    this.#room = 0;
    this.#resize = bytes;
    this.#known = new WeakMap();
    this.#last = undefined;
  }

  /** The block of a call with this head and metadata. */
  encode(head: RequestHead, more: Iterable<HeaderField> = []): Uint8Array {
    const known = this.known(head);
    const bytes: number[] = known === undefined ? this.#encodeHead(head) : [...known];
    for (const [name, value] of more) {
      bytes.push(NEVER_INDEXED);
      pushText(bytes, name);
      pushText(bytes, value);
    }
    return Uint8Array.from(bytes);
  }

  /** The block of a call with this head and no metadata, if encoding it has no effect on the table. */
  known(head: RequestHead): Uint8Array | undefined {
    if (this.#last?.head !== head) this.#last = this.#known.get(head);
    return this.#last?.entries === this.#entries.size ? this.#last.block : undefined;
  }

  #encodeHead(head: RequestHead): number[] {
    const { size } = this.#entries;
    const bytes: number[] = [];
    if (this.#resize !== undefined) {
      pushInteger(bytes, 0, 31, TABLE_SIZE);
      if (this.#resize > 0) pushInteger(bytes, this.#resize, 31, TABLE_SIZE);
    }
    for (const [name, value] of head.fields) this.#encodeField(bytes, name, value);
    const hasEffect = this.#resize !== undefined || this.#entries.size !== size;
    if (!hasEffect) this.#known.set(head, { head, block: Uint8Array.from(bytes), entries: size });
    this.#last = undefined;
    this.#resize = undefined;
    return bytes;
  }

  #encodeField(bytes: number[], name: string, value: string): void {
    const text = `${name} ${value}`;
    const entry = this.#entries.get(text);
    // The newest entry has the lowest index.
    const index = STATIC.get(text) ??
      (entry === undefined ? 0 : FIRST_ENTRY + this.#entries.size - 1 - entry);
    if (index > 0) return pushInteger(bytes, index, 127, INDEXED);
    const size = name.length + value.length + ENTRY_OVERHEAD;
    const isIndexed = size <= this.#room;
    bytes.push(isIndexed ? LITERAL_INDEXED : 0);
    pushText(bytes, name);
    pushText(bytes, value);
    if (!isIndexed) return;
    this.#entries.set(text, this.#entries.size);
    this.#room -= size;
  }
}
