import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { ExportResponse, IExporterTransport } from "@opentelemetry/otlp-exporter-base";
import { backoffMs } from "../base/backoff.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { waitUnlessAborted } from "../base/wait.ts";
import { GrpcConnection } from "../grpc/client/grpc_connection.ts";
import { GrpcError } from "../grpc/grpc_service.ts";
import type { OtlpGrpcOptions } from "./otlp_grpc_options.ts";
import { otlpRetry } from "./otlp_retry.ts";

/** Options of `OtlpGrpcTransport`. */
interface OtlpGrpcTransportOptions extends OtlpGrpcOptions {
  /** Such as `/opentelemetry.proto.collector.trace.v1.TraceService/Export`. */
  readonly path: string;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** An export is sent at most so often, and for no longer than its timeout. */
const MAX_ATTEMPTS = 6;
const BACKOFF = { firstMs: 1_000, longestMs: 5_000 };

/**
 * Sends exports over gRPC. All of them share one connection, which is opened by the first one and again by the first
 * one after its loss.
 */
export class OtlpGrpcTransport implements IExporterTransport {
  readonly #options: OtlpGrpcTransportOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #ended = new AbortController();
  #opening: Promise<GrpcConnection> | undefined;
  #connection: GrpcConnection | undefined;

  /** Opens nothing yet. */
  constructor(options: OtlpGrpcTransportOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
  }

  /** Sends an export until the collector accepts or refuses it, or the timeout is over. Never rejects. */
  async send(data: Uint8Array, timeoutMs: number): Promise<ExportResponse> {
    const deadline = this.#clock.elapsed() + timeoutMs;
    const message = this.#options.isCompressed ? await gzipped(data) : data;
    let failure: ExportResponse | undefined;
    for (let attempt = 1;; attempt++) {
      const answer = await this.#attempt(message, Math.ceil(deadline - this.#clock.elapsed()));
      if (answer instanceof Uint8Array) return { status: "success", data: answer };
      // The end of an attempt by the timeout would hide why its predecessor failed.
      if (failure !== undefined && this.#clock.elapsed() >= deadline) return failure;
      const { isRepeated, delayMs = backoffMs(attempt, this.#random(), BACKOFF) } = otlpRetry(answer);
      failure = { status: "failure", error: describe(answer) };
      if (!isRepeated || attempt === MAX_ATTEMPTS) return failure;
      if (delayMs >= deadline - this.#clock.elapsed()) return failure;
      if (!await waitUnlessAborted(delayMs, this.#clock, this.#ended.signal)) return failure;
    }
  }

  /** Closes the connection; exports under way fail. */
  shutdown(): void {
    this.#ended.abort();
    void this.#connection?.close();
  }

  async #attempt(data: Uint8Array, timeoutMs: number): Promise<Uint8Array | GrpcError> {
    const { path, metadata, isCompressed } = this.#options;
    const encoding = isCompressed ? "gzip" : undefined;
    const startedAt = this.#clock.elapsed();
    let connection: GrpcConnection | undefined;
    try {
      connection = await this.#connected(timeoutMs);
      const left = Math.max(0, timeoutMs - (this.#clock.elapsed() - startedAt));
      const { signal } = this.#ended;
      return await connection.unary(path, data, { metadata, timeoutMs: left, signal, encoding });
    } catch (error) {
      // Its peer may be gone without a word; the next export finds out by a new connection.
      if (error instanceof GrpcError && error.code === "DEADLINE_EXCEEDED") void connection?.close();
      if (error instanceof GrpcError) return error;
      return new GrpcError("INTERNAL", error instanceof Error ? error.message : String(error));
    }
  }

  async #connected(connectTimeoutMs: number): Promise<GrpcConnection> {
    if (this.#connection?.isOpen === true) return this.#connection;
    const { signal } = this.#ended;
    const clock = this.#clock;
    this.#opening ??= GrpcConnection.open(this.#options.target, { signal, connectTimeoutMs, clock })
      .finally(() => this.#opening = undefined);
    this.#connection = await this.#opening;
    if (signal.aborted) void this.#connection.close();
    return this.#connection;
  }
}

const gzipped = promisify(gzip);

/** The code, and the reason, which for a failed certificate is what is wrong with it. */
function describe({ code, message }: GrpcError): Error {
  return new Error(message === "" ? code : `${code}: ${message}`);
}
