import { Buffer } from "node:buffer";
import net from "node:net";
import { RespReader } from "../../src/cache/kv/resp.ts";

/** The outcome of one command: bytes of a reply; nothing when the script has done everything. */
export type KvScript = (command: readonly string[], socket: net.Socket) => string | undefined;

/** The same for one line of a memcached-style cache; the value of `add` is a line as well. */
export type McScript = (line: string, socket: net.Socket) => string | undefined;

/** Starts a server of the Redis protocol on a free port; `info` answers what every client asks before it is ready. */
export async function startScriptedKv(
  script: KvScript,
  info: KvScript = () => "$17\r\nredis_version:7.0\r\n",
): Promise<ScriptedCache> {
  return await ScriptedCache.listen((answer) => {
    const reader = new RespReader();
    return (bytes, socket) =>
      reader.read(bytes, (reply) => {
        const command = Array.isArray(reply) ? reply.map(String) : [];
        answer((command[0]?.toLowerCase() === "info" ? info : script)(command, socket));
      });
  });
}

/** Starts a memcached-style server; `version` answers what every client asks before it is ready. */
export async function startScriptedMc(
  script: McScript,
  version: McScript = () => "VERSION 1.6.0\r\n",
): Promise<ScriptedCache> {
  return await ScriptedCache.listen((answer) => (bytes, socket) => {
    for (const line of bytes.toString("latin1").split("\r\n").slice(0, -1)) {
      answer((line === "version" ? version : script)(line, socket));
    }
  });
}

/** Reads what one connection sends, given what writes the answers. */
type OpenReader = (
  answer: (text: string | undefined) => void,
) => (bytes: Buffer, socket: net.Socket) => void;

/** A server whose answers a test writes; closed at the end of an `await using`. */
export class ScriptedCache implements AsyncDisposable {
  /** Number of connections that were made in all. */
  accepted = 0;
  readonly #sockets = new Set<net.Socket>();
  readonly #server: net.Server;

  private constructor(open: OpenReader) {
    this.#server = net.createServer({ noDelay: true }, (socket) => {
      this.accepted++;
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
      const read = open((text) => {
        if (text !== undefined && !socket.destroyed) socket.write(text, "latin1");
      });
      socket.on("data", (bytes) => read(Buffer.from(bytes), socket));
    });
  }

  static async listen(open: OpenReader): Promise<ScriptedCache> {
    const cache = new ScriptedCache(open);
    await new Promise<void>((resolve) => cache.#server.listen(0, "127.0.0.1", resolve));
    return cache;
  }

  get port(): number {
    const bound = this.#server.address();
    return typeof bound === "object" && bound !== null ? bound.port : 0;
  }

  /** `127.0.0.1:port`, as the settings take it. */
  get url(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Closes everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
