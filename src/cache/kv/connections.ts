import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { HostAndPort } from "../../base/host_port.ts";
import { Credential } from "../../net/credential.ts";
import type { PoolOptions } from "../../net/pool.ts";
import { ServerChecks } from "../server_checks.ts";
import type { TlsFiles } from "../tls_files.ts";
import type { KvEndpoints, KvLogin } from "./address.ts";
import type { KvConnection } from "./connection.ts";
import { type KvOpening, openKvConnection } from "./greeting.ts";
import { KvSentinels } from "./sentinel/sentinels.ts";

/** Waits between attempts to connect once there was a connection. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** The settings allow no wait at all, which would be a storm of attempts. */
const SHORTEST_MS = 10;

/** The waits until the first connection, in milliseconds. */
interface KvStartupTimes {
  readonly initialMs: number;
  readonly maxMs: number;
  /** The attempts end after this; 0 means never. */
  readonly maxElapsedMs: number;
}

/** Who logs in. */
export interface KvCredentials {
  readonly login: Credential<KvLogin>;
  /** To the sentinels, if the cache has some. */
  readonly sentinelLogin: Credential<KvLogin>;
}

/** Options of the connections to a key-value cache. */
export interface KvConnectionsOptions {
  readonly address: KvEndpoints;
  /** Those of the address when absent. */
  readonly credentials?: KvCredentials | undefined;
  /** Files for TLS; of effect only where the address requires TLS, which works without files too. */
  readonly tls?: TlsFiles | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  /** Waits until the first connection; those of a reconnect when absent. */
  readonly startup?: KvStartupTimes | undefined;
  /** Called once when there was no connection in the time of `startup`, with a whole sentence. */
  readonly onGivenUp?: ((text: string) => void) | undefined;
  /** Called once for a server that is used although it did not report its state. */
  readonly onUnknownState?: ((address: string, reason: string) => void) | undefined;
}

/** Opens the connections of a pool to one server. */
export type KvServer = Pick<PoolOptions<KvConnection>, "open" | "retryDelayMs" | "retryOn">;

/** Opens every connection to one key-value cache. They share the time of the start and the sentinels. */
export class KvConnections {
  readonly #options: KvConnectionsOptions;
  readonly #tls: TlsFiles | undefined;
  readonly #credentials: KvCredentials;
  readonly #sentinels: KvSentinels | undefined;
  readonly #checks: ServerChecks;
  readonly #startedAt: number;
  #wasConnected = false;
  #isGivenUp = false;

  constructor(options: KvConnectionsOptions) {
    const { address, clock, tls = { settings: "KV_TLS" } } = options;
    this.#options = options;
    const { username, password, sentinelLogin } = address;
    this.#credentials = options.credentials ?? {
      login: new Credential({ username, password }),
      sentinelLogin: new Credential(sentinelLogin),
    };
    this.#tls = address.tls ? tls : undefined;
    this.#checks = new ServerChecks(options.onUnknownState);
    this.#startedAt = clock.elapsed();
    if (address.kind === "sentinel") {
      this.#sentinels = new KvSentinels({
        ...options,
        address,
        login: this.#credentials.sentinelLogin,
        tls: this.#tls,
      });
    }
  }

  /** The primary, or `node`, which a cluster requires. */
  server(node?: HostAndPort): KvServer {
    const { address, timeoutMs, clock } = this.#options;
    const locate = this.#locator(node);
    const { login, sentinelLogin } = this.#credentials;
    const options = {
      database: address.database,
      login,
      locate,
      tls: this.#tls,
      timeoutMs,
      clock,
      checks: this.#checks,
      primaryOnly: this.#sentinels !== undefined && node === undefined,
    };
    return {
      open: async (lost, signal) => {
        const connection = await openKvConnection(options, lost, signal);
        this.connected();
        return connection;
      },
      retryDelayMs: (failures, reason) => this.retryDelayMs(failures, reason),
      retryOn(retry, signal) {
        login.onChange(retry, signal);
        sentinelLogin.onChange(retry, signal);
      },
    };
  }

  /** There was a connection: from now on the waits are short, and nothing is given up. */
  connected(): void {
    this.#wasConnected = true;
  }

  /** The wait after so many failures, or `null` for no further attempt; `reason` is why the last one failed. */
  retryDelayMs(failures: number, reason: string): number | null {
    const { startup, clock, random, address, onGivenUp } = this.#options;
    if (this.#wasConnected || startup === undefined) return backoffMs(failures, random(), RECONNECT);
    const { initialMs, maxMs, maxElapsedMs } = startup;
    const waits = { firstMs: Math.max(initialMs, SHORTEST_MS), longestMs: maxMs };
    const delay = Math.max(SHORTEST_MS, backoffMs(failures, random(), waits));
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

  #locator(node: HostAndPort | undefined): KvOpening["locate"] {
    const { address } = this.#options;
    const sentinels = this.#sentinels;
    if (sentinels !== undefined && node === undefined) return (signal) => sentinels.locate(signal);
    const target = node ?? (address.kind === "single" ? address.target : undefined);
    if (target === undefined) throw new TypeError(`Cannot connect to "${address.text}": no node is named`);
    return () => Promise.resolve({ target });
  }
}
