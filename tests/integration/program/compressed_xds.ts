import http2 from "node:http2";
import { untilFree } from "../../harness/free_port.ts";

/**
 * A configuration server that answers each stream with one message that has the compressed flag, with this
 * `grpc-encoding` or none.
 */
export class CompressedXds implements AsyncDisposable {
  /** Streams so far. */
  streams = 0;
  readonly #server = http2.createServer();
  readonly #sessions = new Set<http2.ServerHttp2Session>();

  /** Starts one on this port of the loopback interface. */
  static async start(port: number, encoding?: string): Promise<CompressedXds> {
    const server = new CompressedXds(encoding);
    await untilFree(port);
    await new Promise<void>((resolve, reject) => {
      server.#server.once("error", reject);
      server.#server.listen(port, "127.0.0.1", resolve);
    });
    return server;
  }

  private constructor(encoding: string | undefined) {
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {});
      session.once("close", () => this.#sessions.delete(session));
    });
    this.#server.on("stream", (stream: http2.ServerHttp2Stream) => {
      this.streams++;
      stream.on("error", () => {});
      stream.respond({
        ":status": 200,
        "content-type": "application/grpc",
        ...(encoding === undefined ? {} : { "grpc-encoding": encoding }),
      });
      stream.write(Uint8Array.of(1, 0, 0, 0, 2, 8, 1));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
