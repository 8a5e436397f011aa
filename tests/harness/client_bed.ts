import { Duplex } from "node:stream";
import { GrpcConnection, type OpenOptions } from "../../src/grpc/client/grpc_connection.ts";
import { FLAG, FRAME, PREFACE } from "../../src/grpc/native/frames.ts";
import type { HeaderField } from "../../src/grpc/native/hpack_decoder.ts";
import { FakeClock } from "./fake_clock.ts";
import { concatBytes, content, frame, greeting, H2Lines, headers, message } from "./h2_peer.ts";
import { settledTurns } from "./until.ts";

/** The path that tests call. */
export const CALL_PATH = "/test.Peer/Call";

/** The SETTINGS of a server. */
export function serverGreeting(
  settings: readonly (readonly [identifier: number, value: number])[] = [],
): Uint8Array {
  return greeting(settings).subarray(PREFACE.length);
}

/** The header block that begins a usual answer, with more fields or others. */
export function answerHeaders(
  streamId: number,
  more: Readonly<Record<string, string>> = {},
  end = false,
): Uint8Array {
  return headers(streamId, fieldsOf({ ":status": "200", "content-type": "application/grpc", ...more }), end);
}

/** The trailers of an answer. */
export function answerTrailers(streamId: number, more: Readonly<Record<string, string>> = {}): Uint8Array {
  return headers(streamId, fieldsOf({ "grpc-status": "0", ...more }), true);
}

/** A whole usual answer with one message. */
export function wholeAnswer(streamId: number, text: string): Uint8Array {
  return concatBytes(answerHeaders(streamId), content(streamId, message(text)), answerTrailers(streamId));
}

/** Fields of a header block. */
export function fieldsOf(fields: Readonly<Record<string, string>>): HeaderField[] {
  return Object.entries(fields);
}

/** A PING frame that asks. */
export const PING: Uint8Array = frame(FRAME.PING, 0, new Uint8Array(8));
/** A SETTINGS frame that acknowledges those of the client. */
export const SETTINGS_ACK: Uint8Array = frame(FRAME.SETTINGS, 0, new Uint8Array(0), FLAG.ACK);

/** The client's end of a connection in memory; the server's end is the test. */
class MemorySocket extends Duplex {
  readonly written: Uint8Array[] = [];
  /** True if the server reads nothing, so that writes do not end. */
  isBlocked = false;
  /** True if the client has ended its direction. */
  hasEnded = false;
  #unblock: (() => void) | undefined;

  constructor() {
    super({ allowHalfOpen: false });
  }

  override _read(): void {}

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.written.push(chunk.slice());
    if (this.isBlocked) this.#unblock = done;
    else done();
  }

  override _final(done: () => void): void {
    this.hasEnded = true;
    done();
  }

  /** The server reads again. */
  unblock(): void {
    this.isBlocked = false;
    const done = this.#unblock;
    this.#unblock = undefined;
    done?.();
  }
}

/** A client on a connection in memory whose server is the test, with a clock that stands still. */
export class ClientBed {
  readonly clock = new FakeClock();
  readonly socket = new MemorySocket();
  /** The connection, or the error of the attempt. */
  readonly opening: Promise<GrpcConnection>;
  readonly #lines = new H2Lines();
  #isPrefaced = false;

  /** An attempt to connect that the server has not answered. */
  constructor(options: OpenOptions = {}) {
    const target = { address: { host: "peer", port: 80 } };
    this.opening = GrpcConnection.over(this.socket, target, { clock: this.clock, ...options });
    this.opening.catch(() => {});
  }

  /** With the greetings exchanged. */
  static async open(
    settings: readonly (readonly [number, number])[] = [],
    options: OpenOptions = {},
  ): Promise<{ readonly bed: ClientBed; readonly client: GrpcConnection }> {
    const bed = new ClientBed(options);
    bed.send(serverGreeting(settings), SETTINGS_ACK);
    const client = await bed.opening;
    await bed.frames();
    return { bed, client };
  }

  /** The same with a unary call that was sent, and its outcome. */
  static async calling(
    settings: readonly (readonly [number, number])[] = [],
    options: OpenOptions = {},
  ): Promise<{ readonly bed: ClientBed; readonly client: GrpcConnection; readonly call: Promise<string> }> {
    const { bed, client } = await ClientBed.open(settings, options);
    const call = outcomeOf(client.unary(CALL_PATH, new Uint8Array(0)));
    await bed.frames();
    return { bed, client, call };
  }

  /** Sends bytes of the server, each part in its own read. */
  send(...parts: readonly Uint8Array[]): void {
    for (const part of parts) this.socket.push(part.slice());
  }

  /** The server ends its direction. */
  end(): void {
    this.socket.push(null);
  }

  /** The outcome of a unary call that is answered with these bytes. */
  async answered(client: GrpcConnection, ...parts: readonly Uint8Array[]): Promise<string> {
    const call = outcomeOf(client.unary(CALL_PATH, new Uint8Array(0)));
    await this.frames();
    this.send(...parts);
    return await call;
  }

  /** The frames that the client has sent since the last time, as lines, after everything has settled. */
  async frames(): Promise<string[]> {
    await settledTurns();
    const bytes = concatBytes(...this.socket.written.splice(0));
    const rest = this.#isPrefaced ? bytes : bytes.subarray(PREFACE.length);
    this.#isPrefaced = true;
    return this.#lines.read(rest);
  }
}

/** The outcome of a call: its value as a text, or the code and message of its error. */
export async function outcomeOf(call: Promise<Uint8Array | undefined>): Promise<string> {
  try {
    return new TextDecoder().decode(await call);
  } catch (error) {
    const { code, message: text } = Object(error);
    return `${code}: ${text}`;
  }
}
