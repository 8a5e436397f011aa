/**
 * Receivers of the statistics and spans of a target while it is measured, in the process of the bench.
 */
import { createServer } from "node:http";

/** Interval at which metrics are pulled. */
const SCRAPE_INTERVAL_MS = 1_000;

/** A receiver of pushed statistics on a free port, which reads everything and keeps nothing. */
export function startPushReceiver(owned: AsyncDisposableStack): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections = new Set<Deno.Conn>();
  const accepting = (async () => {
    for await (const connection of listener) {
      connections.add(connection);
      connection.readable.pipeTo(new WritableStream()).catch(() => {});
    }
  })();
  owned.defer(async () => {
    listener.close();
    for (const connection of connections) {
      try {
        connection.close();
      } catch {
        // Its peer has closed it.
      }
    }
    await accepting;
  });
  return listener.addr.port;
}

/**
 * A receiver of spans on a free port, which takes everything and keeps nothing. It keeps connections, as collectors do;
 * `Deno.serve` ends one after each large body.
 */
export async function startSpanReceiver(owned: AsyncDisposableStack): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      // An empty message in the encoding of the request.
      const type = request.headers["content-type"] ?? "application/x-protobuf";
      response.writeHead(200, { "content-type": type });
      response.end(type === "application/json" ? "{}" : "");
    });
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  owned.defer(async () => {
    const closed = Promise.withResolvers<void>();
    server.close(() => closed.resolve());
    server.closeAllConnections();
    await closed.promise;
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("Cannot find the receiver of spans");
  return address.port;
}

/** Pulls the metrics of a target again and again. */
export function startScraper(owned: AsyncDisposableStack, url: string): void {
  const stop = new AbortController();
  const scraping = (async () => {
    while (!stop.signal.aborted) {
      const response = await fetch(url, { signal: stop.signal });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`Cannot pull metrics from "${url}": it answered ${response.status}`);
      await new Promise((resolve) => setTimeout(resolve, SCRAPE_INTERVAL_MS));
    }
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  owned.defer(async () => {
    stop.abort();
    await scraping;
  });
}
