import type { Certificates } from "../../harness/certificates.ts";
import type { Socket } from "node:net";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { freePort } from "../../harness/free_port.ts";
import { RawServer } from "../../harness/rest_fixture.ts";
import type { SmokePlaces } from "./platform_smoke.ts";

const ENCODER = new TextEncoder();

/** The servers that `platformSmoke` asks: two origins, and one whose certificate is not trusted. */
export class PlatformServer implements AsyncDisposable {
  readonly places: SmokePlaces;
  readonly #raw: RawServer;
  readonly #servers: readonly Deno.HttpServer<Deno.NetAddr>[];
  readonly #ended = Promise.withResolvers<Response>();
  readonly #visited = new Set<string>();

  private constructor(
    tls: { readonly cert: string; readonly key: string },
    raw: RawServer,
    closedPort: number,
  ) {
    this.#raw = raw;
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const elsewhere = Deno.serve(quiet, (request) => this.#route(request, ""));
    const elsewhereURL = `http://127.0.0.1:${elsewhere.addr.port}`;
    const main = Deno.serve(quiet, (request) => this.#route(request, elsewhereURL));
    const secure = Deno.serve({ ...quiet, ...tls }, () => new Response("trusted"));
    this.#servers = [elsewhere, main, secure];
    this.places = {
      baseURL: `http://127.0.0.1:${main.addr.port}`,
      elsewhereURL,
      tlsURL: `https://127.0.0.1:${secure.addr.port}`,
      rawURL: raw.origin,
      closedURL: `http://127.0.0.1:${closedPort}`,
    };
  }

  /** Starts them on free ports. */
  static async start({ server }: Certificates): Promise<PlatformServer> {
    const [cert, key] = await Promise.all([
      Deno.readTextFile(server.certFile),
      Deno.readTextFile(server.keyFile),
    ]);
    return new PlatformServer({ cert, key }, await RawServer.start(redirecting), freePort());
  }

  async #route(request: Request, elsewhereURL: string): Promise<Response> {
    switch (new URL(request.url).pathname) {
      case "/echo":
        return await echoed(request);
      case "/mirror":
        return new Response(await request.arrayBuffer());
      case "/cookies":
        return new Response(null, {
          headers: [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x-part", "1"], ["x-part", "2"]],
        });
      case "/silent":
        return await this.#ended.promise;
      case "/second-time":
      case "/second-time/post":
        return this.#seen(request.url)
          ? new Response("the second time")
          : new Response(null, { status: 503 });
      case "/form":
        return await formOf(request);
      case "/elsewhere":
        return new Response(null, { status: 302, headers: { location: `${elsewhereURL}/echo` } });
      case "/cut":
        // Shorter than it says: the connection is cut behind what there is.
        return new Response(parts(["half of "]), { headers: { "content-length": "100" } });
      case "/parts":
        return new Response(parts(["one, ", "two, ", "three"]));
      default:
        return bodyOf(new URL(request.url).pathname) ?? new Response("nothing here", { status: 404 });
    }
  }

  /** This was asked for before. */
  #seen(url: string): boolean {
    const { size } = this.#visited;
    return this.#visited.add(url).size === size;
  }

  /** Ends them, and every answer that is still due. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.resolve(new Response());
    await this.#raw[Symbol.asyncDispose]();
    await Promise.all(this.#servers.map((server) => server.shutdown()));
  }
}

const PLAIN = "hello, hello, hello";
const ENCODED: Readonly<Record<string, readonly [coding: string, bytes: Uint8Array]>> = {
  "gzip": ["gzip", gzipSync(PLAIN)],
  "x-gzip": ["x-gzip", gzipSync(PLAIN)],
  "deflate": ["deflate", deflateSync(PLAIN)],
  "deflate-raw": ["deflate", deflateRawSync(PLAIN)],
  "br": ["br", brotliCompressSync(PLAIN)],
  "gzip-gzip": ["gzip, gzip", gzipSync(gzipSync(PLAIN))],
  "gzip-identity": ["identity, gzip,", gzipSync(PLAIN)],
  "identity": ["identity", ENCODER.encode(PLAIN)],
  "nothing": ["x-gzip", new Uint8Array()],
  "none": ["gzip", ENCODER.encode(PLAIN)],
};

/** The response to `/encoded/CODING` or `/status/NUMBER`. */
function bodyOf(path: string): Response | undefined {
  const [, kind, name = ""] = path.split("/");
  if (kind === "status") return new Response("why", { status: Number(name) });
  const [coding, bytes] = ENCODED[name] ?? [];
  if (coding === undefined || bytes === undefined) return undefined;
  return new Response(new Uint8Array(bytes), { headers: { "content-encoding": coding } });
}

/** Redirects `/to` with the bytes of UTF-8, and answers anything else with its path. */
function redirecting(socket: Socket, head: string): void {
  const path = /^GET (\S+)/.exec(head)?.[1] ?? "";
  const first = path === "/to" ? `302 Found\r\nlocation: /caf\u00e9?q=\u00fc` : "200 OK\r\nx-a: b";
  const body = path === "/to" ? "" : path;
  socket.end(`HTTP/1.1 ${first}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
}

/** The type of a form, without its boundary, and its fields. */
async function formOf(request: Request): Promise<Response> {
  const type = request.headers.get("content-type")?.replace(/boundary=.*/, "boundary");
  const fields: unknown[] = [];
  for (const [name, value] of await request.formData()) {
    fields.push([
      name,
      ...typeof value === "string" ? [value] : [value.name, value.type, await value.text()],
    ]);
  }
  return Response.json([type, ...fields]);
}

async function echoed(request: Request): Promise<Response> {
  const { method, headers, url } = request;
  const body = await request.text();
  const names = ["authorization", "content-type", "x-api-key", "x-trace"];
  const seen = Object.fromEntries(names.map((name) => [name, headers.get(name)]));
  const answer = { method, search: new URL(url).search, headers: seen, body };
  return Response.json(answer, { headers: { "x-method": method } });
}

/** A body in pieces. */
function parts(texts: readonly string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  const left = [...texts];
  return new ReadableStream({
    pull(controller) {
      const text = left.shift();
      if (text === undefined) controller.close();
      else controller.enqueue(ENCODER.encode(text));
    },
  });
}
