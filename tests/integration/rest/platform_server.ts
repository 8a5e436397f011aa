import type { Certificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import type { SmokePlaces } from "./platform_smoke.ts";

const ENCODER = new TextEncoder();
/** What a page of another origin has to be told before it may ask and read everything. */
const OPEN_TO_PAGES = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-expose-headers": "*",
};

/** The servers that `platformSmoke` asks: two origins, and one whose certificate nobody trusts. */
export class PlatformServer implements AsyncDisposable {
  readonly places: SmokePlaces;
  readonly #servers: readonly Deno.HttpServer<Deno.NetAddr>[];
  readonly #ended = Promise.withResolvers<Response>();
  #visits = 0;

  private constructor(tls: { readonly cert: string; readonly key: string }, closedPort: number) {
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const elsewhere = Deno.serve(quiet, (request) => this.#answer(request, ""));
    const elsewhereURL = `http://127.0.0.1:${elsewhere.addr.port}`;
    const main = Deno.serve(quiet, (request) => this.#answer(request, elsewhereURL));
    const secure = Deno.serve({ ...quiet, ...tls }, () => new Response("trusted"));
    this.#servers = [elsewhere, main, secure];
    this.places = {
      baseURL: `http://127.0.0.1:${main.addr.port}`,
      elsewhereURL,
      tlsURL: `https://127.0.0.1:${secure.addr.port}`,
      closedURL: `http://127.0.0.1:${closedPort}`,
    };
  }

  /** Starts them on free ports. */
  static async start({ server }: Certificates): Promise<PlatformServer> {
    const [cert, key] = await Promise.all([
      Deno.readTextFile(server.certFile),
      Deno.readTextFile(server.keyFile),
    ]);
    return new PlatformServer({ cert, key }, freePort());
  }

  async #answer(request: Request, elsewhereURL: string): Promise<Response> {
    const response = await this.#route(request, elsewhereURL);
    for (const [name, value] of Object.entries(OPEN_TO_PAGES)) response.headers.set(name, value);
    return response;
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
        return this.#visits++ === 0 ? new Response(null, { status: 503 }) : new Response("the second time");
      case "/elsewhere":
        return new Response(null, { status: 302, headers: { location: `${elsewhereURL}/echo` } });
      case "/cut":
        // Shorter than it says: the connection is cut behind what there is.
        return new Response(parts(["half of "]), { headers: { "content-length": "100" } });
      case "/parts":
        return new Response(parts(["one, ", "two, ", "three"]));
      default:
        return new Response("nothing here", { status: 404 });
    }
  }

  /** Ends them, and every answer that is still due. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.resolve(new Response());
    await Promise.all(this.#servers.map((server) => server.shutdown()));
  }
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
