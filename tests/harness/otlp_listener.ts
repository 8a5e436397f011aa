import { join } from "node:path";
import protobuf from "protobufjs";
import { type GrpcPeer, startGrpcPeer } from "./grpc_peer.ts";

/** Options of the listener of a collector. */
export interface OtlpListenOptions {
  readonly protocol: "http" | "grpc";
  /** A free one when absent. */
  readonly port?: number;
}

/** A collector of the test: takes OTLP over HTTP (JSON or protobuf) or gRPC, and decodes it. */
export abstract class OtlpListener<ExportRequest> implements AsyncDisposable {
  /** Path and headers of each request; of HTTP only. */
  readonly requests: { readonly path: string; readonly headers: Headers }[] = [];
  /** Status of each answer over HTTP from now on; requests with another than 200 are not taken. */
  status = 200;
  #server: Deno.HttpServer<Deno.NetAddr> | undefined;
  #peer: GrpcPeer | undefined;

  /** The value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server?.addr.port ?? this.#peer?.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.shutdown();
    this.#peer?.[Symbol.dispose]();
  }

  protected abstract take(request: ExportRequest): void;

  /** Waits until it listens. */
  protected async listen(signal: "Trace" | "Metrics", options: OtlpListenOptions): Promise<void> {
    const { protocol, port = 0 } = options;
    const folder = `opentelemetry.proto.collector.${signal.toLowerCase()}.v1`;
    const path = join(import.meta.dirname ?? ".", `../testdata/otlp_${signal.toLowerCase()}.proto`);
    const { root } = protobuf.parse(await Deno.readTextFile(path));
    const message = root.lookupType(`${folder}.Export${signal}ServiceRequest`);
    const decode = (bytes: Uint8Array) =>
      message.toObject(message.decode(bytes), { longs: Number, arrays: true }) as ExportRequest;
    if (protocol === "http") return this.#listenHttp(port, decode);
    this.#peer = await startGrpcPeer(`/${folder}.${signal}Service/Export`, {
      listen: `127.0.0.1:${port}`,
      answer: (bytes) => {
        this.take(decode(bytes));
        return new Uint8Array(0);
      },
    });
  }

  #listenHttp(port: number, decode: (bytes: Uint8Array) => ExportRequest): void {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port, onListen: () => {} }, async (request) => {
      const { headers } = request;
      this.requests.push({ path: new URL(request.url).pathname, headers });
      const isJson = headers.get("content-type") === "application/json";
      const body = await bytesOf(request);
      const { status } = this;
      if (status === 200) this.take(isJson ? JSON.parse(new TextDecoder().decode(body)) : decode(body));
      // Without an idle connection that outlives the test.
      return new Response(isJson ? "{}" : null, { status, headers: { connection: "close" } });
    });
  }
}

/** The body of a request, which may be compressed. */
async function bytesOf({ headers, body }: Request): Promise<Uint8Array> {
  if (headers.get("content-encoding") !== "gzip" || body === null) return await new Response(body).bytes();
  return await new Response(body.pipeThrough(new DecompressionStream("gzip"))).bytes();
}
