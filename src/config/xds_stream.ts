import { Buffer } from "node:buffer";
import { type ClientTlsFiles, readClientTls } from "../net/client_tls.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { dialAddressOf } from "../base/host_port.ts";
import type { Logger } from "../base/log.ts";
import type { GrpcTarget, GrpcTls } from "../grpc/client/dial.ts";
import { GrpcConnection } from "../grpc/client/grpc_connection.ts";
import type { GrpcStream } from "../grpc/client/grpc_stream.ts";
import { checkMetadata } from "../grpc/client/request_head.ts";
import { GrpcError } from "../grpc/grpc_service.ts";

/** The address of a configuration server, and the connection to it. */
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
  /** Ends the stream without an event; settles when its connection is closed. */
  close(): Promise<void>;
}

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const CONNECT_MS = 20_000;
// Servers commonly close a connection that pings more than once in five minutes.
const KEEPALIVE = { everyMs: 310_000, withinMs: 20_000 };
const HEADERS = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS";
const TLS_NAMES = {
  cert: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
  key: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
  ca: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
};

/** The headers as metadata; throws an error without their values for those that cannot be sent. */
export function xdsMetadata(headers: ReadonlyMap<string, string>): [name: string, value: string][] {
  const metadata = [...headers].map(([given, value]): [string, string] => {
    const name = given.toLowerCase();
    const sent = name.endsWith("-bin") ? Buffer.from(value, "base64").toString("base64") : value;
    try {
      checkMetadata([[name, sent]]);
    } catch {
      throw new Error(
        `Cannot use ${HEADERS} (value not shown): the header ${JSON.stringify(given)} cannot be sent; ` +
          "expected a name of letters, digits, - . _ and a value in visible ASCII characters",
      );
    }
    return [name, sent];
  });
  try {
    checkMetadata(metadata);
  } catch (error) {
    throw new Error(`Cannot use ${HEADERS} (value not shown): ${errorText(error)}`, { cause: error });
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
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** The newest request before the call exists; it replaces earlier ones. */
  #early: Uint8Array | undefined;
  #stream: GrpcStream | undefined;
  /** Settles when the last request was sent, or when the call is over. */
  #sending: Promise<void> | undefined;

  constructor(target: XdsTarget, events: XdsStreamEvents) {
    this.#target = target;
    this.#events = events;
    this.#running = this.#run();
  }

  send(bytes: Uint8Array): void {
    if (this.#stream === undefined) this.#early = bytes;
    // The iteration over the stream reports how the call ended.
    else this.#sending = this.#stream.send(bytes).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const reason = await this.#receive().catch((error: unknown) =>
      error instanceof GrpcError ? xdsStatusText(error) : errorText(error)
    );
    if (!this.#closing.signal.aborted) this.#events.onEnd(reason);
  }

  /** Receives until the stream ends; returns why. */
  async #receive(): Promise<string> {
    const { clock, headers, maxMessageBytes, keepalive = KEEPALIVE } = this.#target;
    const { signal } = this.#closing;
    const target = await grpcTargetOf(this.#target);
    await using connection = await GrpcConnection.open(target, {
      signal,
      clock,
      keepalive,
      connectTimeoutMs: CONNECT_MS,
    });
    if (signal.aborted) return "it was closed";
    this.#events.onConnected?.();
    const stream = connection.stream(METHOD, { metadata: xdsMetadata(headers), signal, maxMessageBytes });
    this.#stream = stream;
    if (this.#early !== undefined) this.send(this.#early);
    for await (const bytes of stream) {
      if (signal.aborted) break;
      this.#events.onMessage(bytes);
      // Reads nothing more from a server that does not read our requests.
      await this.#sending;
    }
    return "it ended the stream";
  }
}

async function grpcTargetOf({ url, tls, logger }: XdsTarget): Promise<GrpcTarget> {
  const address = dialAddressOf(url);
  if (tls === undefined) return { address };
  return { address, authority: tls.san, tls: await readTls(tls, logger) };
}

/** Reads the files anew for each connection. The authorities replace those of the system. */
async function readTls(
  { san, ...files }: NonNullable<XdsTarget["tls"]>,
  logger: XdsTarget["logger"],
): Promise<GrpcTls> {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    const what = `${TLS_NAMES.cert} and ${TLS_NAMES.key}`;
    throw new Error(`Cannot use ${what}: one of them is not set; expected both or none`);
  }
  const { pair, authorities } = await readClientTls(files, TLS_NAMES, logger);
  for (const warning of pair?.warnings ?? []) logger.warning(warning);
  return { ca: authorities, cert: pair?.cert, key: pair?.key, serverName: san };
}

/** Longest text of a peer in an error. */
const MAX_STATUS_TEXT = 500;
/** A larger announced length is garbage that was read as a length. */
const MAX_ANNOUNCED_BYTES = 2 ** 30;

/** Why a call failed. */
export function xdsStatusText({ code, message }: Pick<GrpcError, "code" | "message">): string {
  const cause = message === "" ? `it ended the stream with status ${code}` : message;
  const text = cause.length > MAX_STATUS_TEXT ? `${cause.slice(0, MAX_STATUS_TEXT).toWellFormed()}…` : cause;
  const announced = Number(/larger than max \((\d+)/.exec(message)?.[1] ?? NaN);
  return code === "RESOURCE_EXHAUSTED" && announced < MAX_ANNOUNCED_BYTES
    ? `${text}; increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, or use fewer rules`
    : text;
}
