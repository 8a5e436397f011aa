import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { lowerPriority } from "../../src/threads/thread_priority.ts";

/** Counts of a receiver. */
export interface Received {
  readonly count: number;
  /** Different `X-Svc-Delivery` identifiers; requests without one are not among them. */
  readonly distinct: number;
  /** Milliseconds from the first to the last request. */
  readonly spanMs: number;
}

/** Counts what comes. */
class Counter {
  #count = 0;
  #firstAt = 0;
  #lastAt = 0;
  #seen = new Set<string>();

  take(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "GET") {
      const spanMs = this.#lastAt - this.#firstAt;
      const received: Received = { count: this.#count, distinct: this.#seen.size, spanMs };
      response.setHeader("content-type", "application/json");
      return void response.end(JSON.stringify(received));
    }
    if (request.method === "DELETE") {
      [this.#count, this.#firstAt, this.#lastAt, this.#seen] = [0, 0, 0, new Set()];
      response.statusCode = 204;
      return void response.end();
    }
    request.resume();
    request.on("end", () => {
      this.#lastAt = performance.now();
      if (this.#count++ === 0) this.#firstAt = this.#lastAt;
      const id = request.headers["x-svc-delivery"];
      if (typeof id === "string") this.#seen.add(id);
      response.setHeader("content-length", 0);
      response.end();
    });
  }
}

if (import.meta.main) {
  // Receivers have their own machines; here they must not take the time of what is measured.
  lowerPriority();
  const counter = new Counter();
  // Connections are kept, as receivers do: `Deno.serve` ends one after each request that comes in two pieces.
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    counter.take(request, response);
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    Deno.stdout.writeSync(new TextEncoder().encode(`port ${port}\n`));
  });
}
