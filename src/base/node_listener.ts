import net from "node:net";
import { isOutOfDescriptors } from "./accept_guard.ts";
import type { Clock } from "./clock.ts";

/** How often a listener without new connections looks whether a file descriptor is left. */
const LOOK_MS = 1_000;
/** How often it is armed again although no shortage was seen; each time takes some memory that is not given back. */
const REARM_MS = 30_000;

/** Where to listen. */
export interface NodeListenerOptions {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly isShared: boolean;
  readonly clock: Clock;
}

/**
 * A TCP port that hands on sockets of `node:net`, over which `node:tls` is faster than over other streams.
 * In Deno 2.9.3 such a listener stops for good, without an event, when an accept fails. So it is armed again
 * after a shortage of file descriptors, and from time to time; `accept` fails while none is left.
 */
export class NodeListener {
  readonly #server: net.Server;
  readonly #clock: Clock;
  readonly #sockets: net.Socket[] = [];
  #waiting: PromiseWithResolvers<net.Socket> | undefined;
  #hasAccepted = false;
  #isStarved = false;
  #armedAt: number;
  #cancelTick: () => void;

  /** Listens on a port. Throws when it cannot. */
  static async open({ host, port, isShared, clock }: NodeListenerOptions): Promise<NodeListener> {
    const server = net.createServer({ noDelay: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port, reusePort: isShared }, resolve);
    });
    return new NodeListener(server, clock);
  }

  private constructor(server: net.Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    this.#armedAt = clock.elapsed();
    server.on("connection", (socket) => this.#take(socket));
    this.#cancelTick = this.#scheduleTick();
  }

  /** Where it listens. */
  get addr(): { readonly hostname: string; readonly port: number } {
    const bound = this.#server.address();
    if (bound === null || typeof bound === "string") throw new Error("Cannot tell the port: it is closed");
    return { hostname: bound.address, port: bound.port };
  }

  /** The next connection. Throws when no file descriptor is left; for one caller at a time. */
  accept(): Promise<net.Socket> {
    const socket = this.#sockets.shift();
    if (socket !== undefined) return Promise.resolve(socket);
    this.#waiting = Promise.withResolvers();
    if (this.#isStarved) this.#look();
    return this.#waiting.promise;
  }

  /** Accepts no further connection. Returns those that `accept` has not handed out. */
  close(): readonly net.Socket[] {
    this.#cancelTick();
    this.#server.close();
    this.#waiting?.reject(new Error("the listener is closed"));
    return this.#sockets.splice(0);
  }

  #take(socket: net.Socket): void {
    this.#hasAccepted = true;
    // After the last descriptor the next accept fails, and nothing says so.
    this.#isStarved ||= shortage() !== undefined;
    socket.on("error", () => {});
    if (this.#waiting === undefined) return void this.#sockets.push(socket);
    this.#waiting.resolve(socket);
    this.#waiting = undefined;
  }

  #scheduleTick(): () => void {
    return this.#clock.after(LOOK_MS, () => {
      this.#cancelTick = this.#scheduleTick();
      if (!this.#hasAccepted) this.#look();
      this.#hasAccepted = false;
    });
  }

  /** Arms the listener where a descriptor is left; otherwise lets `accept` fail. */
  #look(): void {
    const wasStarved = this.#isStarved;
    const error = shortage();
    this.#isStarved = error !== undefined;
    if (error !== undefined) {
      this.#waiting?.reject(error);
      this.#waiting = undefined;
      return;
    }
    const now = this.#clock.elapsed();
    if (!wasStarved && now - this.#armedAt < REARM_MS) return;
    this.#armedAt = now;
    // To listen on the handle of another server is how the platform is asked to accept again.
    const server = net.createServer({ noDelay: true }, (socket) => this.#take(socket));
    server.on("error", () => {});
    server.listen(this.#server);
  }
}

/** The error of a process without a file descriptor left; undefined where one is. */
function shortage(): unknown {
  try {
    Deno.openSync("/dev/null").close();
  } catch (error) {
    if (isOutOfDescriptors(error)) return error;
  }
  return undefined;
}
