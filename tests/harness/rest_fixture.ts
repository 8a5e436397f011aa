import { Post, type Request as RestRequest, RestError } from "@weir/rest";
import { createServer, type Server, type Socket } from "node:net";
import { AssertionError } from "#assert";
import { type HttpServer, serveHttp } from "./http_server.ts";

/** A request as a server saw it. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** An HTTP server on a free port that keeps what it was asked. */
export class EchoServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server: HttpServer;

  /** Answers by `handler`; an empty 200 where it answers nothing. */
  constructor(handler: (seen: SeenRequest, request: Request) => Response | void | Promise<Response | void>) {
    this.#server = serveHttp(async (request) => {
      const { pathname, search } = new URL(request.url);
      const seen = {
        method: request.method,
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: new Uint8Array(await request.arrayBuffer()),
      };
      this.requests.push(seen);
      return await handler(seen, request) ?? new Response();
    });
  }

  get port(): number {
    return this.#server.port;
  }

  /** Its URL, without a slash at the end. */
  get origin(): string {
    return this.#server.origin;
  }

  /** Breaks off what it still answers. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** A TCP server on a free port that does to each connection what a test says. */
export class RawServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  /** Number of connections that were made. */
  accepted = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Calls `onRequest` with each piece of a connection that ends the head of a request. */
  static async start(onRequest: (socket: Socket, head: string) => void): Promise<RawServer> {
    const server = createServer();
    const raw = new RawServer(server);
    server.on("connection", (socket) => {
      raw.accepted++;
      raw.#open.add(socket);
      socket.on("close", () => raw.#open.delete(socket)).on("error", () => {});
      let head = "";
      socket.on("data", (piece) => {
        head += piece.toString("latin1");
        if (!head.includes("\r\n\r\n")) return;
        onRequest(socket, head);
        head = "";
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return raw;
  }

  /** A server that writes the same text to each request, and ends the connection unless told to leave it. */
  static writing(text: string, { end = true } = {}): Promise<RawServer> {
    return RawServer.start((socket) => end ? socket.end(text) : socket.write(text));
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") {
      throw new Error("Cannot tell the port: not listening");
    }
    return address.port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Number of connections that are open. */
  get open(): number {
    return this.#open.size;
  }

  /** Breaks every connection and stops. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** The `RestError` that a call throws. */
export async function failure(run: () => Promise<unknown>): Promise<RestError> {
  let error: unknown;
  try {
    await run();
  } catch (thrown) {
    error = thrown;
  }
  if (error instanceof RestError) return error;
  throw new AssertionError({ message: `Expected a RestError, not ${Deno.inspect(error)}`, actual: error });
}

/** A text that stands for everything that no error may show. */
export const SECRET = "hunter2";

/** Everything that an error may not show, in one request. */
export function secretRequest(origin: string): RestRequest {
  return {
    method: Post,
    baseURL: `${origin}/a?first=(${SECRET})${SECRET}&b='${SECRET}'#${SECRET}`,
    headers: { authorization: `Bearer ${SECRET}`, "x-key": SECRET },
    queryParams: { token: SECRET },
    body: SECRET,
  };
}

/** Fails where an error shows the secret, in whatever way it is printed. */
export function assertKeepsSecrets(error: unknown): void {
  const nested = { error, list: [new Error("outer", { cause: error })] };
  const texts = [
    String(error),
    error instanceof Error ? `${error.message} ${error.stack}` : "",
    JSON.stringify(nested),
    Deno.inspect(nested, { depth: 50, showHidden: true, strAbbreviateSize: 100_000 }),
    Deno.inspect(error, { depth: 50 }),
  ];
  const shown = texts.filter((text) => text.includes(SECRET));
  if (shown.length > 0) throw new AssertionError({ message: `The secret is shown: ${shown.join("\n")}` });
}

/** A controller whose signal counts who listens to it. */
export class CountedAbort {
  readonly #controller = new AbortController();
  readonly #listeners = new Set<unknown>();
  added = 0;

  constructor() {
    const { signal } = this;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      this.added++;
      this.#listeners.add(args[1]);
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      this.#listeners.delete(args[1]);
      remove(...args);
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get listening(): number {
    return this.#listeners.size;
  }

  /** Aborts the signal. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}
