import {
  ERROR_CODES,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  PREFACE,
  readUint32,
} from "../../src/grpc/native/frames.ts";
import { type HeaderField, HpackDecoder } from "../../src/grpc/native/hpack_decoder.ts";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Settings by their number, those that tests change. */
export const PEER_SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
} as const;

/** The first bytes of an HTTP/2 client: the preface, and SETTINGS with these. */
export function greeting(
  settings: readonly (readonly [identifier: number, value: number])[] = [],
): Uint8Array {
  return concatBytes(PREFACE, frame(FRAME.SETTINGS, 0, concatBytes(...settings.map(settingBytes))));
}

/** One frame of any type. */
export function frame(type: number, streamId = 0, payload: Uint8Array = NO_BYTES, flags = 0): Uint8Array {
  return concatBytes(uint32(payload.length * 256 + type), Uint8Array.of(flags), uint32(streamId), payload);
}

/** The header fields of a gRPC request, with more of them or others. */
export function callFields(path: string, more: Readonly<Record<string, string>> = {}): HeaderField[] {
  return Object.entries({
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "peer",
    "content-type": "application/grpc",
    te: "trailers",
    ...more,
  });
}

/** A HEADERS frame that holds the whole block; `end` says that no DATA follows. */
export function headers(
  streamId: number,
  fields: readonly HeaderField[] | Uint8Array,
  end = false,
): Uint8Array {
  const block = fields instanceof Uint8Array ? fields : headerBlock(fields);
  return frame(FRAME.HEADERS, streamId, block, FLAG.END_HEADERS | (end ? FLAG.END_STREAM : 0));
}

/** A DATA frame. */
export function content(streamId: number, payload: Uint8Array, end = false): Uint8Array {
  return frame(FRAME.DATA, streamId, payload, end ? FLAG.END_STREAM : 0);
}

/** A message as gRPC frames it. */
export function message(payload: Uint8Array | string, compressed = false): Uint8Array {
  const body = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  return concatBytes(Uint8Array.of(compressed ? 1 : 0), uint32(body.length), body);
}

/** A whole unary call: its headers, and its one message in one frame. */
export function call(
  streamId: number,
  path: string,
  request: Uint8Array | string,
  more: Readonly<Record<string, string>> = {},
): Uint8Array {
  return concatBytes(headers(streamId, callFields(path, more)), content(streamId, message(request), true));
}

/** A WINDOW_UPDATE frame. */
export function windowUpdate(streamId: number, increment: number): Uint8Array {
  return frame(FRAME.WINDOW_UPDATE, streamId, uint32(increment));
}

/** A RST_STREAM frame that cancels. */
export function cancel(streamId: number): Uint8Array {
  return frame(FRAME.RST_STREAM, streamId, uint32(ERROR_CODES.CANCEL));
}

/** A block of header fields, literal, without tables and without Huffman. */
export function headerBlock(fields: readonly HeaderField[]): Uint8Array {
  return concatBytes(...fields.flatMap((field) => [Uint8Array.of(0), ...field.map(hpackText)]));
}

/** Four concatBytes, highest first. */
export function uint32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
}

/** All of them, one behind the other. */
export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The same bytes again and again. */
export function repeated(count: number, part: Uint8Array): Uint8Array {
  const whole = new Uint8Array(count * part.length);
  for (let index = 0; index < count; index++) whole.set(part, index * part.length);
  return whole;
}

/** Reads what a server sends and tells each frame as a line, such as `DATA 1 message "hello"`. */
export class H2Lines {
  readonly #decoder = new HpackDecoder();
  #rest = NO_BYTES;

  /** The frames that are whole by now. */
  read(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    const bytes = concatBytes(this.#rest, chunk);
    let at = 0;
    for (let end = endOfFrame(bytes, at); end <= bytes.length; end = endOfFrame(bytes, at)) {
      lines.push(this.#line(bytes.subarray(at, end)));
      at = end;
    }
    this.#rest = bytes.slice(at);
    return lines;
  }

  #line(whole: Uint8Array): string {
    const [, , , type, flags = 0] = whole;
    const streamId = readUint32(whole, 5);
    const payload = whole.subarray(FRAME_HEADER_BYTES);
    const ack = (flags & FLAG.ACK) !== 0 ? " ack" : "";
    switch (type) {
      case FRAME.SETTINGS:
        return `SETTINGS${ack}`;
      case FRAME.PING:
        return `PING${ack} ${payload.toHex()}`;
      case FRAME.WINDOW_UPDATE:
        return `WINDOW_UPDATE ${streamId} ${readUint32(payload, 0)}`;
      case FRAME.RST_STREAM:
        return `RST_STREAM ${streamId} ${errorName(readUint32(payload, 0))}`;
      case FRAME.GOAWAY:
        return `GOAWAY ${readUint32(payload, 0)} ${errorName(readUint32(payload, 4))}`;
      case FRAME.DATA:
        return `DATA ${streamId}${endOf(flags)} ${contentOf(payload)}`;
      case FRAME.HEADERS:
        return `HEADERS ${streamId}${endOf(flags)} ${fieldsOf(this.#decoder.decode(payload))}`;
      default:
        return `frame of type ${type}`;
    }
  }
}

/** The place where the frame at `at` ends; beyond the bytes when it is not whole. */
function endOfFrame(bytes: Uint8Array, at: number): number {
  return bytes.length - at < FRAME_HEADER_BYTES
    ? Infinity
    : at + FRAME_HEADER_BYTES + Math.floor(readUint32(bytes, at) / 256);
}

function settingBytes([identifier, value]: readonly [identifier: number, value: number]): Uint8Array {
  return concatBytes(Uint8Array.of(identifier >>> 8, identifier), uint32(value));
}

function endOf(flags: number): string {
  return (flags & FLAG.END_STREAM) !== 0 ? " end" : "";
}

function contentOf(payload: Uint8Array): string {
  const isMessage = payload.length >= 5 && payload.length <= 100 && payload[0] === 0 &&
    readUint32(payload, 1) === payload.length - 5;
  if (!isMessage) return `${payload.length} bytes`;
  return `message ${JSON.stringify(new TextDecoder().decode(payload.subarray(5)))}`;
}

function fieldsOf(fields: readonly HeaderField[]): string {
  // It goes with the first answer of a connection, whichever that is.
  const shown = fields.filter(([name]) => name !== "grpc-accept-encoding");
  return shown.map(([name, value]) => `${name}=${value}`).join(" ");
}

function errorName(code: number): string {
  return Object.entries(ERROR_CODES).find(([, known]) => known === code)?.[0] ?? String(code);
}

/** A header block in frames of at most this payload. */
export function blockFrames(streamId: number, block: Uint8Array, size = 16_384): Uint8Array {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < block.length; at += size) {
    const flags = at + size >= block.length ? FLAG.END_HEADERS : 0;
    frames.push(
      frame(at === 0 ? FRAME.HEADERS : FRAME.CONTINUATION, streamId, block.subarray(at, at + size), flags),
    );
  }
  return concatBytes(...frames);
}

/** A text as HPACK writes it: its length with a prefix of 7 bits, and its bytes. */
export function hpackText(text: string): Uint8Array {
  const body = new TextEncoder().encode(text);
  const length: number[] = [];
  if (body.length < 127) length.push(body.length);
  else {
    length.push(127);
    let rest = body.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push(rest % 128 + 128);
    length.push(rest);
  }
  return concatBytes(Uint8Array.from(length), body);
}
