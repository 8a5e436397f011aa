import {
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  connectivityState,
  Metadata,
} from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import type { SecureContext } from "node:tls";
import type { ClientTlsFiles } from "../base/client_tls.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { readXdsTls, XdsCredentials } from "./xds_credentials.ts";

/** Where a configuration server is, and how to connect to it. */
export interface XdsTarget {
  /** `host:port`, `dns:///host:port` or `unix:path`. */
  readonly url: string;
  /** Metadata of the call. */
  readonly headers: ReadonlyMap<string, string>;
  /** Plain text when absent. */
  readonly tls?: ClientTlsFiles & { readonly san?: string | undefined } | undefined;
  /** Maximum size of a message. */
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  /** Logs certificates that are not valid now, and files that keep their last good content. */
  readonly logger: Pick<Logger, "warning">;
  /** HTTP/2 keepalive; by default what a server that allows one ping in five minutes accepts. */
  readonly keepalive?: { readonly everyMs: number; readonly withinMs: number } | undefined;
}

/** Events of a stream. `onEnd` is the last and comes once, unless the stream was closed before. */
export interface XdsStreamEvents {
  /** The server took the connection. */
  onConnected?(): void;
  onMessage(bytes: Uint8Array): void;
  onEnd(reason: string): void;
}

/** One aggregated discovery stream. */
export interface XdsStream {
  /** Sends a request, or keeps it until the stream is connected. */
  send(bytes: Uint8Array): void;
  close(): void;
}

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const CONNECT_MS = 20_000;
// Servers commonly close a connection that pings more than once in five minutes.
const KEEPALIVE = { everyMs: 310_000, withinMs: 20_000 };
const RESOURCE_EXHAUSTED = 8;

/** Headers that gRPC sets itself, or that HTTP/2 forbids. */
const OWN_HEADERS =
  /^(?:grpc-.*|te|host|connection|keep-alive|proxy-connection|upgrade|transfer-encoding|http2-settings|content-type|user-agent)$/i;

/** The headers as metadata; throws an error without their values for those that cannot be sent. */
export function xdsMetadata(headers: ReadonlyMap<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) {
    try {
      if (OWN_HEADERS.test(name)) throw new TypeError("it belongs to the call itself");
      metadata.set(name, name.toLowerCase().endsWith("-bin") ? Buffer.from(value, "base64") : value);
    } catch {
      throw new Error(
        "Cannot use CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS (value not shown): " +
          `the header ${JSON.stringify(name)} cannot be sent; expected a name of letters, digits, - . _ ` +
          "and a value in visible ASCII characters",
      );
    }
  }
  return metadata;
}

/** Opens a stream on a separate connection; TLS files are read for each. */
export function openXdsStream(target: XdsTarget, events: XdsStreamEvents): XdsStream {
  return new GrpcXdsStream(target, events);
}

class GrpcXdsStream implements XdsStream {
  readonly #target: XdsTarget;
  readonly #events: XdsStreamEvents;
  readonly #sockets = new Set<Socket>();
  readonly #cancelDeadline: () => void;
  /** The newest request before the call exists; it replaces earlier ones. */
  #early: Uint8Array | undefined;
  #client: Client | undefined;
  #call: ClientDuplexStream<Uint8Array, Uint8Array> | undefined;
  #hasEnded = false;

  constructor(target: XdsTarget, events: XdsStreamEvents) {
    this.#target = target;
    this.#events = events;
    this.#cancelDeadline = target.clock.after(CONNECT_MS, () => {
      this.#end(`it did not take the connection within ${CONNECT_MS / 1_000} s`);
    });
    void this.#open();
  }

  send(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    const call = this.#call;
    if (call === undefined) this.#early = bytes;
    else if (!call.write(bytes)) {
      // Reads nothing more from a server that does not read our requests.
      call.pause();
      call.once("drain", () => call.resume());
    }
  }

  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancelDeadline();
    this.#call?.cancel();
    // The library passes an IP address on one turn late; a channel that is closed before that would reconnect forever.
    setImmediate(() => this.#client?.close());
    for (const socket of this.#sockets) socket.destroy();
  }

  async #open(): Promise<void> {
    try {
      const { tls, logger } = this.#target;
      const reading = tls === undefined ? undefined : await readXdsTls(tls, logger);
      for (const warning of reading?.warnings ?? []) logger.warning(warning);
      if (!this.#hasEnded) this.#start(reading?.context);
    } catch (error) {
      this.#end(errorText(error));
    }
  }

  #start(context: SecureContext | undefined): void {
    const { url, headers, tls } = this.#target;
    const own = new XdsCredentials({
      context,
      name: tls?.san ?? hostOf(url),
      onSocket: (socket) => this.#own(socket),
      clock: this.#target.clock,
    });
    const client = new Client(url, own, channelOptions(this.#target));
    this.#client = client;
    this.#watch(client);
    const call = client.makeBidiStreamRequest(
      METHOD,
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
      (bytes: Buffer): Uint8Array => bytes,
      xdsMetadata(headers),
    );
    this.#call = call;
    call.on("data", (bytes: Uint8Array) => {
      if (!this.#hasEnded) this.#events.onMessage(bytes);
    });
    // The status reports every error.
    call.on("error", () => {});
    call.on("status", (status: unknown) => this.#end(xdsStatusText(status)));
    if (this.#early !== undefined) this.send(this.#early);
  }

  /** Tracks a socket: one that is connecting when its channel is closed would stay open. */
  #own(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    if (this.#hasEnded) socket.destroy();
  }

  /** Cancels the connection timeout once the channel is ready. */
  #watch(client: Client): void {
    const channel = client.getChannel();
    const look = () => {
      if (this.#hasEnded) return;
      const state = channel.getConnectivityState(false);
      if (state === connectivityState.READY) {
        this.#cancelDeadline();
        this.#events.onConnected?.();
      } else channel.watchConnectivityState(state, Infinity, look);
    };
    look();
  }

  #end(reason: string): void {
    if (this.#hasEnded) return;
    this.close();
    this.#events.onEnd(reason);
  }
}

function channelOptions({ tls, maxMessageBytes, keepalive = KEEPALIVE }: XdsTarget): ClientOptions {
  return {
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.keepalive_time_ms": keepalive.everyMs,
    "grpc.keepalive_timeout_ms": keepalive.withinMs,
    // Proxies of the environment are not meant for this server.
    "grpc.enable_http_proxy": 0,
    "grpc.enable_retries": 0,
    // A channel makes one attempt; what remains of it should end soon.
    "grpc.initial_reconnect_backoff_ms": 20,
    "grpc.max_reconnect_backoff_ms": 20,
    "grpc.service_config_disable_resolution": 1,
    "grpc.use_local_subchannel_pool": 1,
    ...(tls?.san === undefined ? {} : { "grpc.default_authority": tls.san }),
  };
}

function hostOf(url: string): string {
  if (url.startsWith("unix:")) return "localhost";
  return url.replace(/^dns:(?:\/\/[^/]*\/)?/, "").replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** Longest text of a peer in an error. */
const MAX_STATUS_TEXT = 500;
/** A larger announced length is garbage that was read as a length. */
const MAX_ANNOUNCED_BYTES = 2 ** 30;

/** Text of the library around the cause of a failed connection. */
const AROUND =
  /^No connection established\. Last error: (?:Error(?: \[\w+\])?: )?|(?: \([^()]*Z\))?\.? Resolution note: $/g;

/** Why a call ended. The library may report an `Error` without `code` and `details`. */
export function xdsStatusText(status: unknown): string {
  const { code, details, message } = Object(status) as Readonly<Record<string, unknown>>;
  if (code === 0) return "it ended the stream";
  const given = [details, message].find((text) => typeof text === "string") ?? "";
  const known = typeof code === "number" ? `status ${code}` : "an unknown status";
  const cause = given.replaceAll(AROUND, "") || `it ended the stream with ${known}`;
  const text = cause.length > MAX_STATUS_TEXT ? `${cause.slice(0, MAX_STATUS_TEXT).toWellFormed()}…` : cause;
  const announced = Number(/larger than max \((\d+)/.exec(given)?.[1] ?? NaN);
  return code === RESOURCE_EXHAUSTED && announced < MAX_ANNOUNCED_BYTES
    ? `${text}; increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, or use fewer rules`
    : text;
}
