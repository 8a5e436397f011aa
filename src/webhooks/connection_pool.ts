import { Agent, type AgentOptions, type ClientRequest, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { answerError } from "./send_error.ts";
import type { DialTarget } from "./guarded_dial.ts";

/** How connections are made and kept. */
export interface ConnectionPoolOptions {
  readonly isTls: boolean;
  readonly isReusing: boolean;
  readonly clock: Clock;
  readonly dial: (target: DialTarget) => Promise<Socket>;
}

/** How many connections wait for their next request, for one host and for all. */
const MAX_IDLE_OF_HOST = 16;
const MAX_IDLE = 256;
/** How long one waits: less than the five seconds after which many servers close it. */
const IDLE_MS = 4_000;
/** After this a connection is made anew, so that a name that moved is followed. */
const MAX_AGE_MS = 60_000;

/** Connections to hosts, each dialled by `dial` and used again for the same host and port. */
export class ConnectionPool extends Agent {
  readonly #options: ConnectionPoolOptions;
  readonly #madeAt = new WeakMap<object, number>();
  /** What ends a connection that waits too long. */
  readonly #idle = new Map<object, () => void>();

  constructor(options: ConnectionPoolOptions) {
    const agent: AgentOptions = options.isReusing
      ? { keepAlive: true, maxFreeSockets: MAX_IDLE_OF_HOST }
      : { keepAlive: false };
    super(agent);
    this.#options = options;
  }

  override createConnection(
    { host, port }: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex {
    const { dial, isTls, clock } = this.#options;
    // Node calls back with an error alone, which its types do not say.
    const done = callback as ((error: Error | null, stream?: Duplex) => void) | undefined;
    dial({ host: host ?? "", port: Number(port), isTls }).then((socket) => {
      this.#madeAt.set(socket, clock.elapsed());
      socket.once("close", () => this.#unidle(socket));
      done?.(null, socket);
    }, (error) => done?.(answerError(error)));
    // Nothing here stands for "later", which its types do not say either.
    return undefined as unknown as Duplex;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const { clock } = this.#options;
    const age = clock.elapsed() - (this.#madeAt.get(socket) ?? 0);
    if (age > MAX_AGE_MS || this.#idle.size >= MAX_IDLE) return false;
    // What the types call nothing is a yes or a no.
    const isKept: unknown = super.keepSocketAlive(socket);
    if (isKept !== true) return false;
    const cancel = clock.after(IDLE_MS, () => socket.destroy());
    this.#idle.set(socket, cancel);
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#unidle(socket);
    super.reuseSocket(socket, request);
  }

  #unidle(socket: Duplex): void {
    this.#idle.get(socket)?.();
    this.#idle.delete(socket);
  }
}
