import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import {
  decodeRateLimitResponse,
  encodeRateLimitRequest,
  type WireRateLimitResponse,
} from "../../src/wire/rls.ts";
import { SocketRelay } from "./socket_relay.ts";

/** The outcome of a call. */
interface GrpcAnswer {
  /** Number of the status code. */
  readonly code: number;
  readonly details: string;
  /** Messages of the answer, in their order. */
  readonly messages: readonly Uint8Array[];
}

/** An open call with messages both ways. */
interface OpenBidi {
  readonly answer: Promise<GrpcAnswer>;
  send(message: Uint8Array): void;
  cancel(): void;
}

/** Path of the one method that decides. */
export const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** Far above what an answer takes: 10,000 calls may have been made at the same time. */
const DEADLINE_MS = 120_000;
const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
const asBytes = (bytes: Buffer): Uint8Array => bytes;

/** A gRPC client on bytes; closed at the end of a `using`. */
export class GrpcClient implements Disposable {
  readonly #client: grpc.Client;
  readonly #relay: SocketRelay | undefined;

  /** `host:port` or `unix:/path`. */
  constructor(
    address: string,
    options: grpc.ClientOptions = {},
    credentials = grpc.credentials.createInsecure(),
  ) {
    const path = /^unix:(.*)/.exec(address)?.[1];
    const relay = path === undefined ? undefined : SocketRelay.toUnixSocket(path);
    this.#relay = relay;
    this.#client = new grpc.Client(relay === undefined ? address : `127.0.0.1:${relay.port}`, credentials, {
      "grpc.enable_http_proxy": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 200,
      "grpc.max_send_message_length": -1,
      "grpc.max_receive_message_length": -1,
      ...options,
    });
  }

  /** One message there and one back. Aborting the signal cancels the call. */
  unary(
    path: string,
    request: Uint8Array,
    headers: Readonly<Record<string, string>> = {},
    { timeoutMs = DEADLINE_MS, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<GrpcAnswer> {
    const metadata = metadataOf(headers);
    const options = { deadline: Date.now() + timeoutMs };
    return new Promise((resolve) => {
      const call = this.#client.makeUnaryRequest(
        path,
        toBuffer,
        asBytes,
        request,
        metadata,
        options,
        (error, answer) => {
          if (error === null) {
            resolve({ code: 0, details: "", messages: answer === undefined ? [] : [answer] });
          } else resolve({ code: error.code, details: error.details, messages: [] });
        },
      );
      signal?.addEventListener("abort", () => call.cancel(), { once: true });
    });
  }

  /** A stream from the server; `onMessage` may end it by the function it is given. */
  serverStream(
    path: string,
    request: Uint8Array,
    onMessage: (message: Uint8Array, cancel: () => void) => void,
  ): Promise<GrpcAnswer> {
    const call = this.#client.makeServerStreamRequest(path, toBuffer, asBytes, request);
    return streamAnswer(call, onMessage);
  }

  /** Messages both ways: all requests are sent at the same time, and the stream ends when all are answered. */
  async bidi(path: string, requests: readonly Uint8Array[]): Promise<GrpcAnswer> {
    const call = this.#client.makeBidiStreamRequest(path, toBuffer, asBytes);
    const answer = streamAnswer(call, () => {});
    for (const request of requests) call.write(request);
    call.end();
    return await answer;
  }

  /** A call with messages both ways at any time; `onMessage` is called for each one of the server. */
  openBidi(
    path: string,
    onMessage: (message: Uint8Array) => void,
    headers: Readonly<Record<string, string>> = {},
  ): OpenBidi {
    const call = this.#client.makeBidiStreamRequest(path, toBuffer, asBytes, metadataOf(headers));
    return {
      answer: streamAnswer(call, onMessage),
      send: (message) => void call.write(message),
      cancel: () => call.cancel(),
    };
  }

  [Symbol.dispose](): void {
    this.#client.close();
    this.#relay?.[Symbol.dispose]();
  }
}

/** A decision by gRPC: its overall code by number, or the status of the refusal. */
export async function decide(
  client: GrpcClient,
  domain: string,
  ...descriptors: readonly string[]
): Promise<WireRateLimitResponse | GrpcAnswer> {
  const request = encodeRateLimitRequest({
    domain,
    hitsAddend: 0,
    descriptors: descriptors.map((text) => ({
      entries: text.split(",").map((pair) => {
        const [key = "", value = ""] = pair.split("=");
        return { key, value };
      }),
    })),
  });
  const answer = await client.unary(SHOULD_RATE_LIMIT, request);
  const [message] = answer.messages;
  return message === undefined ? answer : decodeRateLimitResponse(message);
}

type ReadableCall = grpc.ClientReadableStream<Uint8Array> | grpc.ClientDuplexStream<Uint8Array, Uint8Array>;

function streamAnswer(
  call: ReadableCall,
  onMessage: (message: Uint8Array, cancel: () => void) => void,
): Promise<GrpcAnswer> {
  const messages: Uint8Array[] = [];
  call.on("error", () => {});
  call.on("data", (message: Uint8Array) => {
    messages.push(message);
    onMessage(message, () => call.cancel());
  });
  return new Promise((resolve) => {
    call.on("status", ({ code, details }: grpc.StatusObject) => resolve({ code, details, messages }));
  });
}

function metadataOf(headers: Readonly<Record<string, string>>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
