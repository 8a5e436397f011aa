import net from "node:net";
import { isOutOfDescriptors } from "./accept_guard.ts";
import type { Clock } from "../base/clock.ts";

/** Interval in which a listener without new connections checks whether a file descriptor is free. */
const LOOK_MS = 1_000;
/** Interval of rearming it without a shortage; each time leaks some memory. */
const REARM_MS = 30_000;

interface NodeListenerOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Other processes may listen on the same port. */
  readonly isShared: boolean;
  readonly clock: Clock;
}

/**
 * A TCP port that hands on sockets of `node:net`, over which `node:tls` is faster than over other streams. In Deno 2.9.3
 * such a listener stops without an event when an accept fails, so it is rearmed after a shortage of file descriptors
 * and periodically; `accept` fails while none is free.
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

  /** The bound address. */
  get addr(): { readonly hostname: string; readonly port: number } {
    const bound = this.#server.address();
    if (bound === null || typeof bound === "string") throw new Error("Cannot tell the port: it is closed");
    return { hostname: bound.address, port: bound.port };
  }

  /** The next connection; throws when no file descriptor is free. One call at a time. */
  accept(): Promise<net.Socket> {
    const socket = this.#sockets.shift();
    if (socket !== undefined) return Promise.resolve(socket);
    this.#waiting = Promise.withResolvers();
    if (this.#isStarved) this.#look();
    return this.#waiting.promise;
  }

  /** Stops accepting; returns the connections that `accept` has not handed out. */
  close(): readonly net.Socket[] {
    this.#cancelTick();
    this.#server.close();
    this.#waiting?.reject(new Error("the listener is closed"));
    return this.#sockets.splice(0);
  }

  #take(socket: net.Socket): void {
    this.#hasAccepted = true;
    // After the last descriptor the next accept fails silently.
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

  /** Rearms the listener if a descriptor is free; otherwise rejects the pending `accept`. */
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
    // Listening on the handle of another server makes the platform accept again.
    const server = net.createServer({ noDelay: true }, (socket) => this.#take(socket));
    server.on("error", () => {});
    server.listen(this.#server);
  }
}

/** The error of opening a file when no file descriptor is free. */
function shortage(): unknown {
  try {
    Deno.openSync("/dev/null").close();
  } catch (error) {
    if (isOutOfDescriptors(error)) return error;
  }
  return undefined;
}
