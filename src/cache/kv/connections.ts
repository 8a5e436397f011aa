import tls from "node:tls";
import { backoffMs } from "../../base/backoff.ts";
import type { HostAndPort } from "../../base/host_port.ts";
import { explainedTlsError, isCertificateProblem } from "../../base/tls_problem.ts";
import { ServerChecks } from "../server_checks.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import { readTlsFiles, type TlsFiles } from "../tls_files.ts";
import type { KvEndpoints } from "./address.ts";
import { KvConnection, type KvConnectionEvents } from "./connection.ts";
import type { KvConnectorOptions } from "./connector.ts";
import { KvSentinels } from "./sentinel/sentinels.ts";

/** Waits between attempts to connect once there was a connection. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
const LOCATE_MS = 5_000;
/** The settings allow no wait at all, which would be a storm of attempts. */
const SHORTEST_MS = 10;

/** The waits until the first connection, in milliseconds. */
export interface KvStartupTimes {
  readonly initialMs: number;
  readonly maxMs: number;
  /** The attempts end after this; 0 means never. */
  readonly maxElapsedMs: number;
}

/** How connections to a key-value cache are made. */
export interface KvConnectionsOptions extends Pick<SharedCacheOptions, "timeoutMs" | "clock" | "random"> {
  readonly address: KvEndpoints;
  /** Files for TLS; of effect only where the address requires TLS, which works without files too. */
  readonly tls?: TlsFiles | undefined;
  /** Waits until the first connection; those of a reconnect when absent. */
  readonly startup?: KvStartupTimes | undefined;
  /** Called once when there was no connection in the time of `startup`, with a whole sentence. */
  readonly onGivenUp?: ((text: string) => void) | undefined;
  /** Called once for a server that is used although it did not report its state. */
  readonly onUnknownState?: ((address: string, reason: string) => void) | undefined;
}

/** Opens every connection to one key-value cache. They share the time of the start and the sentinels. */
export class KvConnections {
  readonly #options: KvConnectionsOptions;
  readonly #tls: TlsFiles | undefined;
  readonly #sentinels: KvSentinels | undefined;
  readonly #checks: ServerChecks;
  readonly #startedAt: number;
  #wasConnected = false;
  #isGivenUp = false;

  constructor(options: KvConnectionsOptions) {
    const { address, clock, tls = { settings: "KV_TLS" } } = options;
    this.#options = options;
    this.#tls = address.tls ? tls : undefined;
    this.#checks = new ServerChecks(options.onUnknownState);
    this.#startedAt = clock.elapsed();
    if (address.kind === "sentinel") {
      this.#sentinels = new KvSentinels({ ...options, address, tls: this.#tls });
    }
  }

  /** Opens a connection to the primary, or to `node`, which a cluster requires. */
  open(events: KvConnectionEvents, node?: HostAndPort): KvConnection {
    const { address, timeoutMs, clock } = this.#options;
    const locate = this.#locator(node);
    let attempts = 0;
    return new KvConnection({
      ...address,
      connector: { locate, tls: this.#tls, timeoutMs, clock },
      checks: this.#checks,
      primaryOnly: this.#sentinels !== undefined && node === undefined,
      retryDelayMs: (attempt, reason) => this.retryDelayMs(attempt, reason),
    }, {
      ...events,
      ready: () => {
        attempts++;
        this.connected();
        events.ready();
      },
      lost: (reason) => {
        const attempt = ++attempts;
        if (this.#tls === undefined || !isCertificateProblem(reason)) return events.lost(reason);
        void this.#explain(reason, this.#tls, locate).then((text) =>
          attempt === attempts && events.lost(text)
        );
      },
    });
  }

  /** The reason with the cause, where the platform rejected the certificate of the server. */
  async #explain(reason: string, files: TlsFiles, locate: KvConnectorOptions["locate"]): Promise<string> {
    const { clock } = this.#options;
    try {
      const [{ target }, secure] = await Promise.all([
        locate(AbortSignal.timeout(LOCATE_MS)),
        readTlsFiles(files),
      ]);
      const connect = () => tls.connect({ ...target, ...secure, rejectUnauthorized: false });
      return (await explainedTlsError(new Error(reason), { connect, clock })).message;
    } catch {
      return reason;
    }
  }

  /** There was a connection: from now on the waits are short, and nothing is given up. */
  connected(): void {
    this.#wasConnected = true;
  }

  /** The wait before the next attempt, counted from 1, or `null` for none; `reason` is why the last one failed. */
  retryDelayMs(attempt: number, reason: string): number | null {
    const { startup, clock, random, address, onGivenUp } = this.#options;
    if (this.#wasConnected || startup === undefined) return backoffMs(attempt, random(), RECONNECT);
    const { initialMs, maxMs, maxElapsedMs } = startup;
    const waits = { firstMs: Math.max(initialMs, SHORTEST_MS), longestMs: maxMs };
    const delay = Math.max(SHORTEST_MS, backoffMs(attempt, random(), waits));
    if (maxElapsedMs === 0) return delay;
    const left = this.#startedAt + maxElapsedMs - clock.elapsed();
    if (left > 0) return Math.min(delay, left);
    const limit = `no connection within KV_STARTUP_MAX_ELAPSED_TIME, ${maxElapsedMs} ms`;
    if (!this.#isGivenUp) {
      onGivenUp?.(`Cannot connect to key-value cache "${address.text}": ${limit}: ${reason}`);
    }
    this.#isGivenUp = true;
    return null;
  }

  #locator(node: HostAndPort | undefined): KvConnectorOptions["locate"] {
    const { address } = this.#options;
    const sentinels = this.#sentinels;
    if (sentinels !== undefined && node === undefined) return (signal) => sentinels.locate(signal);
    const target = node ?? (address.kind === "single" ? address.target : undefined);
    if (target === undefined) throw new TypeError(`Cannot connect to "${address.text}": no node is named`);
    return () => Promise.resolve({ target });
  }
}
