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

/** What is reached into of the client, because it leaves these ends loose. */
interface ClientInternals {
  readonly connector: {
    stream?: { readonly destroyed: boolean } | undefined;
    connect(...args: unknown[]): Promise<{ on(event: "error", listener: (error: Error) => void): unknown }>;
    disconnect(): void;
  };
  socketTimeoutTimer: number | undefined;
}

/**
 * The client listens for one error of its socket only: a second one, such as EPIPE on a connection
 * that was refused, would end the process. It keeps the timer of a connection that is gone, which
 * would later close the next one. And it waits for the end of a socket that has ended already.
 */
function guardSocket(client: Redis): void {
  const internals = client as unknown as ClientInternals;
  const { connector } = internals;
  const { connect, disconnect } = connector;
  connector.connect = async function (...args: unknown[]) {
    const stream = await connect.apply(this, args);
    stream.on("error", () => {});
    return stream;
  };
  connector.disconnect = function () {
    if (this.stream?.destroyed !== true) disconnect.call(this);
  };
  client.on("close", () => {
    clearTimeout(internals.socketTimeoutTimer);
    internals.socketTimeoutTimer = undefined;
  });
}
