import { Connection } from "../../src/grpc/native/connection.ts";
import { greeting, H2Lines } from "./h2_peer.ts";
import { Probe } from "./probe.ts";

/** A connection of the probe without a socket, and a peer that reads what it sends. */
export class ConnectionBed {
  readonly probe: Probe;
  readonly connection: Connection;
  readonly faults: string[] = [];
  readonly otherProtocols: string[] = [];
  /** Lengths of header blocks that were unusually long. */
  readonly longHeaders: number[] = [];
  /** Number of times that the connection had output that no bytes of the peer brought. */
  outputs = 0;
  /** The time, in milliseconds. */
  now = 0;
  readonly #lines = new H2Lines();
  readonly #maxPiece: number;

  /** Starts with the greetings exchanged, unless it is to be raw. */
  constructor(
    options: {
      readonly raw?: boolean;
      readonly settings?: readonly (readonly [number, number])[];
      readonly direct?: boolean;
      /** The bytes arrive in pieces of at most this length. */
      readonly maxPiece?: number;
    } = {},
  ) {
    this.probe = new Probe(options);
    this.#maxPiece = options.maxPiece ?? Infinity;
    this.connection = new Connection({
      methods: this.probe.methods,
      now: () => this.now,
      onOutput: () => void this.outputs++,
      onFault: (method, error) => void this.faults.push(`${method}: ${error}`),
      onLongHeaders: (bytes) => void this.longHeaders.push(bytes),
      onOtherProtocol: (protocol) => void this.otherProtocols.push(protocol),
      onDeadline: () => {},
      onEnded: (metrics, startedAt) => metrics.ended(this.now - startedAt),
    });
    if (options.raw !== true) this.send(greeting(options.settings));
  }

  /** Gives the connection bytes, and answers the frames that it then has for the peer. */
  send(...parts: readonly Uint8Array[]): string[] {
    for (const part of parts) {
      const length = Math.min(part.length, this.#maxPiece);
      for (let at = 0; at < part.length; at += length) {
        this.connection.receive(part.subarray(at, at + length));
      }
    }
    return this.sent();
  }

  /** The frames that the connection has for the peer, with all that waits because there are many. */
  sent(): string[] {
    const { output } = this.connection.sender;
    const lines = this.#lines.read(output.take().slice());
    while (this.connection.isStalled) {
      this.connection.readOn();
      lines.push(...this.#lines.read(output.take().slice()));
    }
    return lines;
  }
}

/** The frames that answer a call which went well. */
export function answer(streamId: number, body: string): string[] {
  return [
    `HEADERS ${streamId} :status=200 content-type=application/grpc`,
    `DATA ${streamId} message ${JSON.stringify(body)}`,
    `HEADERS ${streamId} end grpc-status=0`,
  ];
}
