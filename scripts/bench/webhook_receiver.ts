import { giveWay } from "../../src/base/thread_priority.ts";

/** What a receiver has seen. */
export interface Received {
  readonly count: number;
  /** Different `X-Svc-Delivery` identifiers; requests without one are not among them. */
  readonly distinct: number;
  /** Milliseconds from the first to the last request. */
  readonly spanMs: number;
}

const ANSWER = new Uint8Array();

if (import.meta.main) {
  // Receivers have machines of their own; here they must not take the time of what is measured.
  giveWay();
  let count = 0;
  let firstAt = 0;
  let lastAt = 0;
  let seen = new Set<string>();
  const onListen = ({ port }: Deno.NetAddr) =>
    Deno.stdout.writeSync(new TextEncoder().encode(`port ${port}\n`));
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, async (request) => {
    if (request.method === "GET") {
      const received: Received = { count, distinct: seen.size, spanMs: lastAt - firstAt };
      return Response.json(received);
    }
    if (request.method === "DELETE") {
      [count, firstAt, lastAt, seen] = [0, 0, 0, new Set()];
      return new Response(null, { status: 204 });
    }
    const id = request.headers.get("x-svc-delivery");
    await request.arrayBuffer();
    lastAt = performance.now();
    if (count++ === 0) firstAt = lastAt;
    if (id !== null) seen.add(id);
    return new Response(ANSWER);
  });
}
