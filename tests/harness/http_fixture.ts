import { Health } from "../../src/base/health.ts";
import { createDebugHandler, type DebugOptions } from "../../src/http/routes/debug.ts";
import { type HttpPort, type HttpPortOptions, listenHttp } from "../../src/http/server/http_port.ts";
import { rateLimitRoute, type RateLimitRouteOptions } from "../../src/http/routes/rate_limit_route.ts";
import { createRouter, type HttpHandler } from "../../src/http/server/router.ts";
import type { Decision } from "../../src/ratelimit/decision.ts";
import { FakeClock } from "./fake_clock.ts";
import { RecordedLogger } from "./recorded_logger.ts";

/** The most that a raw connection waits for an answer. */
const READ_LIMIT_MS = 30_000;

/** A handler that answers `/quick` immediately, and everything else when the test says so. */
export class Gate {
  readonly #opened = Promise.withResolvers<void>();
  waiting = 0;
  aborted = 0;

  open(): void {
    this.#opened.resolve();
  }

  readonly handler: HttpHandler = async (request, closing) => {
    if (new URL(request.url).pathname === "/quick") return new Response("quick");
    this.waiting++;
    closing.addEventListener("abort", () => void this.aborted++);
    await this.#opened.promise;
    return new Response("done");
  };
}

/** Options of a listener on a free loopback port. */
export function listenOptions(options: {
  readonly logger: HttpPortOptions["logger"];
  readonly clock: HttpPortOptions["clock"];
}): HttpPortOptions {
  return { name: "test", onState: () => {}, hostname: "127.0.0.1", port: 0, ...options };
}

/** Makes a handler of a fixture's log and clock. */
export type HandlerOf = (served: { log: RecordedLogger; clock: FakeClock }) => HttpHandler;

/** The debug port with rules and statistics of tests, and these options. */
export function debugHandler(options: Partial<DebugOptions> = {}): HandlerOf {
  const shown = { rlconfig: () => "the rules\n", stats: () => "the stats\n", health: new Health() };
  return ({ log, clock }) => createDebugHandler({ ...shown, logger: log, clock, ...options });
}

/** A decision that lets a request with one descriptor through. */
export const OK_DECISION: Decision = {
  overallCode: "OK",
  statuses: [{ code: "OK", limitRemaining: 0 }],
  responseHeadersToAdd: [],
  dynamicMetadata: undefined,
};

/** The route of decisions in front of this function. */
export function decisionHandler(decide: RateLimitRouteOptions["decide"]): HandlerOf {
  return ({ log, clock }) =>
    createRouter([rateLimitRoute({ decide, clock })], { logger: log, clock, newRequestId: () => "made" });
}

/** A real listener on a free loopback port; it is closed at the end of its block. */
export class ServedHttp implements AsyncDisposable {
  readonly log = new RecordedLogger();
  readonly clock = new FakeClock();
  readonly listener: HttpPort;

  /** The time of its connections stands still, unless they go by `clock` as well. */
  constructor(
    handler: HandlerOf,
    { isTimed = false, maxConnections = Infinity }: { isTimed?: boolean; maxConnections?: number } = {},
  ) {
    const clock = isTimed ? this.clock : new FakeClock();
    const options = listenOptions({ logger: this.log, clock });
    this.listener = listenHttp(handler(this), { ...options, maxConnections });
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.listener.port}${path}`;
  }

  /** A connection whose bytes are written and read by hand. */
  async dial(): Promise<Dialed> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: this.listener.port });
    connection.setNoDelay();
    return new Dialed(connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close(0);
  }
}

/** A handler that is called without a listener, as the HTTP port calls it, with a clock that stands still. */
export class HandledHttp {
  readonly log = new RecordedLogger();
  readonly clock = new FakeClock();
  readonly #handler: HttpHandler;

  constructor(handler: HandlerOf) {
    this.#handler = handler(this);
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const request = new Request(`http://127.0.0.1${path}`, init);
    const response = await this.#handler(request, new AbortController().signal, "127.0.0.1");
    // As the runtime does.
    return request.method === "HEAD" ? new Response(null, response) : response;
  }
}

/** A raw connection to a server. */
export class Dialed implements Disposable {
  readonly #connection: Deno.Conn;
  #open = true;

  constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  async write(text: string | Uint8Array): Promise<void> {
    const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
    for (let sent = 0; sent < bytes.length;) sent += await this.#connection.write(bytes.subarray(sent));
  }

  /** Returns whether the peer has ended or cut the connection; waits for it. */
  async ended(): Promise<boolean> {
    try {
      return await this.#limited(async () => await this.#connection.read(new Uint8Array(1)) === null);
    } catch (error) {
      return error instanceof Deno.errors.ConnectionReset;
    }
  }

  /** Reads until `enough` holds for what came so far, or the peer has closed. */
  async read(enough: (text: string) => boolean = () => false): Promise<string> {
    const decoder = new TextDecoder();
    const chunk = new Uint8Array(65_536);
    let text = "";
    await this.#limited(async () => {
      while (!enough(text)) {
        const count = await this.#connection.read(chunk);
        if (count === null) break;
        text += decoder.decode(chunk.subarray(0, count), { stream: true });
      }
    });
    return text;
  }

  /** A wait in vain fails its test, and does not hold up the run. */
  async #limited<T>(wait: () => Promise<T>): Promise<T> {
    const limit = setTimeout(() => this.close(), READ_LIMIT_MS);
    try {
      return await wait();
    } finally {
      clearTimeout(limit);
    }
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Holds once a whole JSON answer has come. */
export function wholeJson(text: string): boolean {
  return text.includes("\r\n\r\n") && text.endsWith("}");
}
