/** An HTTP server on a free port of the loopback address. */
export interface HttpServer extends AsyncDisposable {
  readonly port: number;
  /** Its URL, without a slash at the end. */
  readonly origin: string;
}

/**
 * Serves HTTP on a free port. Its end breaks off what is still being answered: an answer that waits for a later line of a
 * test that failed would never come.
 */
export function serveHttp(answer: Deno.ServeHandler<Deno.NetAddr>): HttpServer {
  const ending = new AbortController();
  const options = { hostname: "127.0.0.1", port: 0, signal: ending.signal, onListen() {} };
  const { addr: { port }, finished } = Deno.serve(options, answer);
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await finished;
    },
  };
}
