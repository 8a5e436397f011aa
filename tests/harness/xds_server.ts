import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerOptions,
} from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { freePort, untilFree } from "./free_port.ts";
import {
  DISCOVERY_REQUEST,
  DISCOVERY_RESPONSE,
  type WireAny,
  type WireDiscoveryRequest,
} from "../../src/wire/discovery.ts";
import {
  RATE_LIMIT_CONFIG,
  type WireRateLimitConfig,
  type WireRule,
} from "../../src/wire/rate_limit_config.ts";

/** The type that rules are asked for by. */
export const RULES_TYPE = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/** A request as the server took it. */
interface SeenRequest {
  /** The kind of request; `stale` when its nonce is not that of the last response, which leaves it unanswered. */
  readonly kind: "first" | "ack" | "nack" | "stale";
  readonly version: string;
  readonly nonce: string;
  /** Why it refused; absent for everything else. */
  readonly error?: string;
}

/** Options of an xDS server. */
interface XdsServerOptions {
  /** A free one when absent. */
  readonly port?: number;
  /** Plain text when absent. */
  readonly credentials?: ServerCredentials;
  readonly options?: ServerOptions;
}

type Call = ServerDuplexStream<Buffer, Buffer>;

interface Stream {
  readonly call: Call;
  /** Of the last response. */
  nonce: string;
  /** The version that a request waits to see replaced; absent when none waits. */
  watch: string | undefined;
}

const PATH = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const INVALID_ARGUMENT = 3;

/**
 * A configuration server of the test, with the manners of a snapshot cache: a request is answered when
 * its version is not that of the snapshot, immediately or when that changes, and one with an old nonce never.
 */
export class XdsServer implements AsyncDisposable {
  /** In their order. */
  readonly requests: SeenRequest[] = [];
  /** The same as they came. */
  readonly raw: WireDiscoveryRequest[] = [];
  /** Headers of each stream. */
  readonly headers: Metadata[] = [];
  readonly #streams = new Set<Stream>();
  #snapshot: { readonly version: string; readonly resources: readonly WireAny[] } | undefined;
  #server: Server | undefined;
  readonly #port: number;
  #nonces = 0;
  readonly #options: XdsServerOptions;

  constructor(options: XdsServerOptions) {
    this.#options = options;
    this.#port = options.port ?? freePort();
  }

  /** Starts one and waits until it listens. */
  static async start(options: XdsServerOptions = {}): Promise<XdsServer> {
    const server = new XdsServer(options);
    await server.listen();
    return server;
  }

  /** `host:port`. */
  get url(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Its port. */
  get port(): number {
    return this.#port;
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Listens, after `stop` on the same port as before. */
  async listen(): Promise<void> {
    const server = new Server(this.#options.options ?? {});
    const bytes = (message: Buffer) => message;
    const method = {
      path: PATH,
      requestStream: true,
      responseStream: true,
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    };
    server.addService({ method }, { method: (call: Call) => this.#serve(call) });
    const credentials = this.#options.credentials ?? ServerCredentials.createInsecure();
    await untilFree(this.#port);
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(this.url, credentials, (error) => error === null ? resolve() : reject(error));
    });
    this.#server = server;
  }

  /** Ends it and every connection to it. */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#streams.clear();
  }

  set(version: string, ...configs: readonly WireRateLimitConfig[]): void {
    this.setResources(
      version,
      configs.map((config) => ({ typeUrl: RULES_TYPE, value: RATE_LIMIT_CONFIG.encode(config) })),
    );
  }

  /** The same for resources of any kind. */
  setResources(version: string, resources: readonly WireAny[]): void {
    this.#snapshot = { version, resources };
    for (const stream of this.#streams) {
      if (stream.watch !== undefined && stream.watch !== version) this.#respond(stream);
    }
  }

  /** Sends what is offered although no request asked for it. */
  push(typeUrl = RULES_TYPE): void {
    for (const stream of this.#streams) this.#respond(stream, typeUrl);
  }

  /** Sends bytes that may be no message. */
  sendBytes(bytes: Uint8Array): void {
    for (const { call } of this.#streams) call.write(Buffer.from(bytes));
  }

  /** Ends every stream and leaves the connections. */
  endStreams(): void {
    for (const { call } of this.#streams) call.end();
  }

  /** Says GOAWAY, and ends what is still open after so long. */
  goAway(graceMs: number): void {
    this.#server?.drain(this.url, graceMs);
  }

  take(): SeenRequest[] {
    return this.requests.splice(0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  #serve(call: Call): void {
    const stream: Stream = { call, nonce: "", watch: undefined };
    this.#streams.add(stream);
    this.headers.push(call.metadata);
    const gone = () => void this.#streams.delete(stream);
    call.on("cancelled", gone);
    call.on("error", gone);
    call.on("close", gone);
    call.on("end", () => {
      gone();
      call.end();
    });
    call.on("data", (bytes: Buffer) => this.#take(stream, DISCOVERY_REQUEST.decode(bytes)));
  }

  #take(stream: Stream, request: WireDiscoveryRequest): void {
    this.raw.push(request);
    const { versionInfo: version, responseNonce: nonce, errorDetail } = request;
    const isStale = nonce !== stream.nonce;
    const isRefusal = errorDetail?.code === INVALID_ARGUMENT;
    const kind = isStale ? "stale" : nonce === "" ? "first" : isRefusal ? "nack" : "ack";
    const error = errorDetail === undefined ? {} : { error: errorDetail.message };
    this.requests.push({ kind, version, nonce, ...error });
    if (isStale) return;
    stream.watch = version;
    if (this.#snapshot !== undefined && this.#snapshot.version !== version) this.#respond(stream);
  }

  #respond(stream: Stream, typeUrl = RULES_TYPE): void {
    const { version, resources } = this.#snapshot ?? { version: "", resources: [] };
    stream.watch = undefined;
    stream.nonce = `n${++this.#nonces}`;
    const response = { versionInfo: version, resources, typeUrl, nonce: stream.nonce };
    stream.call.write(Buffer.from(DISCOVERY_RESPONSE.encode(response)));
  }
}

/** A resource with rules that allow so much a day, by key. */
export function shopConfig(
  limits: Readonly<Record<string, number>>,
  name = "shop",
  domain = name,
): WireRateLimitConfig {
  const descriptors = Object.entries(limits).map(([key, requestsPerUnit]) =>
    wireRule({
      key,
      rateLimit: { unit: DAY, requestsPerUnit, unlimited: false, name: "", replaces: [] },
    })
  );
  return { name, domain, descriptors };
}

/** A resource with an unknown unit. */
export function badConfig(name = "shop"): WireRateLimitConfig {
  const rateLimit = { unit: 99, requestsPerUnit: 1, unlimited: false, name: "", replaces: [] };
  return { name, domain: name, descriptors: [wireRule({ key: "open", rateLimit })] };
}

/** The error of a client about `badConfig`. */
export const BAD_TEXT = "resource \"shop\": descriptors[0].rate_limit.unit: invalid rate limit unit '99'; " +
  "expected one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR";

const DAY = 4;

/** A rule with what is not given empty. */
export function wireRule(rule: Partial<WireRule>): WireRule {
  return {
    key: "",
    value: "",
    descriptors: [],
    shadowMode: false,
    detailedMetric: false,
    quotaMode: false,
    ...rule,
  };
}
