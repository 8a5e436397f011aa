import { FLAG, FRAME } from "../../src/grpc/native/frames.ts";
import {
  callFields,
  cancel,
  concatBytes,
  content,
  frame,
  headerBlock,
  headers,
  uint32,
  windowUpdate,
} from "./h2_peer.ts";

const zeros = (length: number): Uint8Array => new Uint8Array(length);

/** Frames of every type, each as HTTP/2 allows it, none of which makes a call. */
const FRAMES = {
  "DATA of a byte": (source) => source.onOpen((id) => content(id, zeros(1))),
  "DATA of 16 KiB": (source) => source.onOpen((id) => content(id, zeros(16_384))),
  "DATA without content": (source) => source.onOpen((id) => content(id, zeros(0))),
  "HEADERS without a message": (source) => headers(source.nextId(), source.block, true),
  "HEADERS without an end": (source) => headers(source.nextId(), source.block),
  "HEADERS of an unknown method": (source) => headers(source.nextId(), source.unknownBlock, true),
  "PRIORITY": () => frame(FRAME.PRIORITY, 1, zeros(5)),
  "RST_STREAM": (source) => source.onOpen(cancel),
  "SETTINGS": () => frame(FRAME.SETTINGS),
  "PING": () => frame(FRAME.PING, 0, zeros(8)),
  "PING with ACK": () => frame(FRAME.PING, 0, zeros(8), FLAG.ACK),
  "GOAWAY": () => frame(FRAME.GOAWAY, 0, zeros(8)),
  "WINDOW_UPDATE of the connection": () => windowUpdate(0, 1),
  "WINDOW_UPDATE of a stream": (source) => source.onOpen((id) => windowUpdate(id, 1)),
  "CONTINUATION": (source) => {
    const id = source.nextId();
    const { block } = source;
    return concatBytes(
      frame(FRAME.HEADERS, id, block, FLAG.END_STREAM),
      frame(FRAME.CONTINUATION, id, zeros(0), FLAG.END_HEADERS),
    );
  },
  "an unknown type": () => frame(200, 0, uint32(0)),
} satisfies Readonly<Record<string, (source: FloodSource) => Uint8Array>>;

/** The name of a kind of flood. */
export type FloodKind = keyof typeof FRAMES;

/** Every kind of flood. */
export const FLOOD_KINDS = Object.keys(FRAMES) as readonly FloodKind[];

/** Frames of one peer that floods its connection; `path` is that of a unary method. */
export class FloodSource {
  readonly block: Uint8Array;
  readonly unknownBlock: Uint8Array;
  #id = -1;

  constructor(path: string) {
    this.block = headerBlock(callFields(path));
    this.unknownBlock = headerBlock(callFields(`${path}Unknown`));
  }

  /** So many frames, each of a kind that `random`, from 0 to below 1, picks from these. */
  next(kinds: readonly FloodKind[], count: number, random: () => number): Uint8Array {
    const frames = Array.from({ length: count }, () => {
      const kind = kinds[Math.floor(random() * kinds.length)];
      return kind === undefined ? zeros(0) : FRAMES[kind](this);
    });
    return concatBytes(...frames);
  }

  /** A stream that was never opened. */
  nextId(): number {
    return this.#id += 2;
  }

  /** A frame on the stream that was opened last; opens one where there is none. */
  onOpen(make: (id: number) => Uint8Array): Uint8Array {
    if (this.#id > 0) return make(this.#id);
    const id = this.nextId();
    return concatBytes(headers(id, this.block), make(id));
  }
}
