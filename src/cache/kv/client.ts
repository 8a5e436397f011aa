import { Redis } from "ioredis";
import { connectorClass, type KvConnectorOptions } from "./connector.ts";

/** What a client is made of. */
export interface KvClientOptions {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Bounds the silence while an answer is due. */
  readonly timeoutMs: number;
  readonly connector: KvConnectorOptions;
  /** Wait before an attempt, counted from 1, or `null` for no more of them. */
  readonly retryStrategy: (attempt: number) => number | null;
  /** Ask the server at the beginning whether it is ready; sentinels have no such thing. */
  readonly asksReady?: boolean;
}

/** A client that is not connected yet. It queues nothing and sends nothing twice. */
export function createClient(options: KvClientOptions): Redis {
  const { username, password, timeoutMs, connector, retryStrategy, asksReady = true } = options;
  const client = new Redis({
    Connector: connectorClass(connector),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // The connector has the options of TLS; here it only says for which event of the stream to wait.
    ...(connector.tls === undefined ? {} : { tls: {} }),
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: asksReady,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // The connector bounds connecting.
    connectTimeout: 0,
    socketTimeout: timeoutMs,
    disableClientInfo: true,
    retryStrategy,
  });
  mend(client);
  return client;
}

/** What is reached into of the client, because it leaves these ends loose. */
interface ClientInternals {
  socketTimeoutTimer: number | undefined;
  auth(...args: [...login: unknown[], callback: (error: Error | null, reply?: unknown) => void]): unknown;
  select(...args: unknown[]): Promise<unknown>;
  _readyCheck(callback: (error: Error | null, server?: Record<string, string>) => void): void;
}

/** How a server says that it wants no password; it is no reason not to count. */
const NO_LOGIN_WANTED =
  /no password is set|without any password configured|wrong number of arguments for 'auth'/;

/**
 * The client keeps the timer of a connection that is gone, which would later close the next one. And it
 * waits on one connection for a server that is loading, when its name may stand for another by now. And it
 * writes to the console about a server that wants no login.
 */
function mend(client: Redis): void {
  const internals = client as unknown as ClientInternals;
  client.on("close", () => {
    clearTimeout(internals.socketTimeoutTimer);
    internals.socketTimeoutTimer = undefined;
  });
  const { select } = internals;
  internals.select = (...args) => {
    const selected = select.apply(client, args);
    // After a reconnect the client selects by itself, and nobody there waits for what comes of it.
    selected.catch(() => {});
    return selected;
  };
  const auth = internals.auth;
  internals.auth = (...args) => {
    const callback = args.pop();
    const told = (error: Error | null, reply?: unknown) => {
      if (typeof callback !== "function") return;
      callback(error !== null && isLoginUnwanted(error) ? null : error, reply);
    };
    return auth.call(client, ...args, told);
  };
  internals._readyCheck = (callback) => {
    client.info().then((text) => {
      const server = fieldsOf(text);
      const isLoading = server.loading !== undefined && server.loading !== "0";
      callback(isLoading ? new Error("the server is loading its data") : null, server);
    }, (error: Error) => {
      // Whoever may count need not be allowed to ask this. And when the connection has gone meanwhile,
      // what it says now would only hide why.
      if (error.message.startsWith("NOPERM")) callback(null, {});
      else if (client.status === "connect") callback(error);
    });
  };
}

/** Whether a server that refused a login requires none. */
export function isLoginUnwanted(error: Error): boolean {
  return NO_LOGIN_WANTED.test(error.message);
}

function fieldsOf(text: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1);
  }
  return fields;
}
