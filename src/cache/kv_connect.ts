import { Redis } from "ioredis";
import type { KvAddress } from "./kv_address.ts";

/** Longest wait between two attempts to connect. */
const MAX_RECONNECT_DELAY_MS = 2_000;
const FIRST_RECONNECT_DELAY_MS = 50;

/** How a connection to a key-value cache is made. */
export interface KvConnectOptions {
  readonly address: KvAddress;
  /** Bounds connecting, and the silence while an answer is due. */
  readonly timeoutMs: number;
  /** A number from 0 to below 1, for the jitter of the waits. */
  readonly random: () => number;
}

/**
 * A client that connects in the background and goes on trying. Nothing is queued while there is no
 * connection and nothing is sent twice: a counter must not move twice for one hit.
 */
export function createKvClient(options: KvConnectOptions): Redis {
  const { address, timeoutMs, random } = options;
  const client = new Redis({
    ...address.target,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    db: address.database,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableClientInfo: true,
    retryStrategy: (attempt) => reconnectDelayMs(attempt, random()),
  });
  guardSocket(client);
  return client;
}

/** Doubles from attempt to attempt up to the bound; the upper half is jitter. */
export function reconnectDelayMs(attempt: number, random: number): number {
  const full = Math.min(FIRST_RECONNECT_DELAY_MS * 2 ** Math.min(attempt - 1, 10), MAX_RECONNECT_DELAY_MS);
  return full / 2 + (full / 2) * random;
}

interface Connector {
  connect(...args: unknown[]): Promise<{ on(event: "error", listener: (error: Error) => void): unknown }>;
}

/**
 * The client listens for one error of its socket only; a second one, such as EPIPE on a connection
 * that was refused, would end the process.
 */
function guardSocket(client: Redis): void {
  const { connector } = client as unknown as { connector: Connector };
  const connect = connector.connect;
  connector.connect = async function (...args: unknown[]) {
    const stream = await connect.apply(this, args);
    stream.on("error", () => {});
    return stream;
  };
}
