import { Client, connectivityState, Metadata } from "@grpc/grpc-js";
import type { ClientDuplexStream, ClientOptions } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { readXdsTls, XdsCredentials, type XdsTlsFiles } from "./xds_credentials.ts";

/** Where a configuration server is, and how it is reached. */
export interface XdsTarget {
  /** `host:port`, `dns:///host:port` or `unix:path`. */
  readonly url: string;
  /** Sent with the call, `name` and value. */
  readonly headers: ReadonlyMap<string, string>;
  /** Plain text when absent. */
  readonly tls?: XdsTlsFiles & { readonly san?: string | undefined } | undefined;
  /** Largest message that is taken. */
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  /** Told of certificates that are not valid, or not yet. */
  readonly logger: Pick<Logger, "warning">;
  /** Pings while nothing else comes; those of a server that allows one in five minutes when absent. */
  readonly keepalive?: { readonly everyMs: number; readonly withinMs: number } | undefined;
}

/** What a stream tells of; nothing comes after `onEnd`, which comes once unless it was closed before. */
export interface XdsStreamEvents {
  onMessage(bytes: Uint8Array): void;
  onEnd(reason: string): void;
}

/** One aggregated discovery stream. */
export interface XdsStream {
  /** Sends a request; before the connection stands it waits for that. */
  send(bytes: Uint8Array): void;
  close(): void;
}

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const CONNECT_MS = 20_000;
// Servers commonly end a connection that pings more than once in five minutes.
const KEEPALIVE = { everyMs: 310_000, withinMs: 20_000 };
const RESOURCE_EXHAUSTED = 8;

/** Headers that are the call's own, or that no call of HTTP/2 can carry. */
const OWN_HEADERS =
  /^(?:grpc-.*|te|host|connection|keep-alive|proxy-connection|upgrade|transfer-encoding|http2-settings|content-type|user-agent)$/i;

/** The call's headers. Throws, without their values, for those that no call can carry. */
export function xdsMetadata(headers: ReadonlyMap<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) {
    try {
      if (OWN_HEADERS.test(name)) throw new TypeError("it belongs to the call itself");
      metadata.set(name, name.toLowerCase().endsWith("-bin") ? Buffer.from(value, "base64") : value);
    } catch {
      throw new Error(
        "Cannot use CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS (value not shown): " +
          `the header ${JSON.stringify(name)} cannot be sent; a name of letters, digits, - . _ and a value ` +
          "in visible ASCII characters would be right",
      );
    }
  }
  return metadata;
}

/** Opens a stream on a connection of its own; the files of TLS are read for each. */
export function openXdsStream(target: XdsTarget, events: XdsStreamEvents): XdsStream {
  return new GrpcXdsStream(target, events);
}

class GrpcXdsStream implements XdsStream {
  readonly #target: XdsTarget;
  readonly #events: XdsStreamEvents;
  readonly #sockets = new Set<Socket>();
  readonly #cancelDeadline: () => void;
  /** The newest request from before the call was made; each one says everything. */
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
      // A server that does not read our answers gets no more to say until it does.
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
      const { tls } = this.#target;
      const reading = tls === undefined ? undefined : await readXdsTls(tls);
      for (const warning of reading?.warnings ?? []) this.#target.logger.warning(warning);
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
    // Whatever the error, the status says it too.
    call.on("error", () => {});
    call.on("status", (status: unknown) => this.#end(xdsStatusText(status)));
    if (this.#early !== undefined) this.send(this.#early);
  }

  /** A socket whose channel is closed before it connected would stay open. */
  #own(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    if (this.#hasEnded) socket.destroy();
  }

  /** Calls the deadline off once the connection stands; no time-out of its own, the deadline is one. */
  #watch(client: Client): void {
    const channel = client.getChannel();
    const look = () => {
      if (this.#hasEnded) return;
      const state = channel.getConnectivityState(false);
      if (state === connectivityState.READY) this.#cancelDeadline();
      else channel.watchConnectivityState(state, Infinity, look);
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
    // What the environment says of proxies was not said for this server.
    "grpc.enable_http_proxy": 0,
    "grpc.enable_retries": 0,
    // There is one attempt to a channel; what it leaves behind is to end soon.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 100,
    "grpc.service_config_disable_resolution": 1,
    "grpc.use_local_subchannel_pool": 1,
    ...(tls?.san === undefined ? {} : { "grpc.default_authority": tls.san }),
  };
}

/** The host of an address, without its port. */
function hostOf(url: string): string {
  if (url.startsWith("unix:")) return "localhost";
  return url.replace(/^dns:(?:\/\/[^/]*\/)?/, "").replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** Longest text of a peer that is told. */
const MAX_STATUS_TEXT = 500;
/** No server announces more in earnest: what was read as a length is some other text. */
const MAX_ANNOUNCED_BYTES = 2 ** 30;

/** What the library says of a connection that was not made, around what it was. */
const AROUND =
  /^No connection established\. Last error: (?:Error(?: \[\w+\])?: )?|(?: \([^()]*Z\))?\.? Resolution note: $/g;

/**
 * Why a call ended, of whatever the library reports: for a message that it cannot decompress that is an
 * `Error` without `code` and `details`.
 */
export function xdsStatusText(status: unknown): string {
  const { code, details, message } = Object(status) as Readonly<Record<string, unknown>>;
  if (code === 0) return "it ended the stream";
  const given = [details, message].find((text) => typeof text === "string") ?? "";
  const known = typeof code === "number" ? `status ${code}` : "an unknown status";
  const told = given.replaceAll(AROUND, "") || `it ended the stream with ${known}`;
  const text = told.length > MAX_STATUS_TEXT ? `${told.slice(0, MAX_STATUS_TEXT).toWellFormed()}…` : told;
  const announced = Number(/larger than max \((\d+)/.exec(given)?.[1] ?? NaN);
  return code === RESOURCE_EXHAUSTED && announced < MAX_ANNOUNCED_BYTES
    ? `${text}; a larger XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, or fewer rules, would be right`
    : text;
}
