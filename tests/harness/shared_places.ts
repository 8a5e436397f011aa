import { type ChromiumPlace, startChromium } from "./chromium.ts";
import { startMemcached } from "./memcached.ts";
import { type PostgresPlace, PostgresServer } from "./postgres_server.ts";
import { startRedis } from "./redis_server.ts";
import { type Tool, toolAvailable } from "./tools.ts";

/** Where the shared servers are, as far as they run. */
export interface SharedPlaces {
  readonly redis?: { readonly port: number };
  readonly memcached?: { readonly port: number };
  readonly postgres?: PostgresPlace;
  readonly chromium?: ChromiumPlace;
}

/** A server that tests may share. */
export type SharedKind = keyof SharedPlaces;

/** How many databases the shared redis-server has; each is leased once. */
export const REDIS_DATABASES = 20_000;

/** Names the shared servers to the processes of a test run; its value is JSON. */
const VARIABLE = "WEIR_TEST_SERVERS";

/** A server, where it is, and the folder that it leaves behind when it is killed. */
interface StartedServer<Place> {
  readonly server: AsyncDisposable;
  readonly place: Place;
  readonly folder?: string;
}

type Starters = {
  readonly [Kind in SharedKind]: {
    readonly tool: Tool;
    start(): Promise<StartedServer<NonNullable<SharedPlaces[Kind]>>>;
  };
};

const STARTERS: Starters = {
  redis: {
    tool: "redis-server",
    async start() {
      const args = ["--databases", String(REDIS_DATABASES)];
      const server = await startRedis({ isSilent: true, args });
      return { server, place: { port: server.port }, folder: server.folder };
    },
  },
  memcached: {
    tool: "memcached",
    async start() {
      const server = await startMemcached({ isSilent: true });
      return { server, place: { port: server.port } };
    },
  },
  postgres: {
    tool: "postgres",
    async start() {
      const server = await PostgresServer.start({ isSilent: true, settings: POSTGRES_SETTINGS });
      const { port, folder } = server;
      return { server, place: { port, folder }, folder };
    },
  },
  chromium: {
    tool: "chromium-headless-shell",
    async start() {
      const server = await startChromium();
      return { server, place: { endpoint: server.endpoint, folder: server.folder }, folder: server.folder };
    },
  },
};

/** For many databases with many connections each; nothing is copied to another server. */
const POSTGRES_SETTINGS = {
  max_connections: "400",
  shared_buffers: "64MB",
  wal_level: "minimal",
  max_wal_senders: "0",
  max_wal_size: "1GB",
  // Tests wait for a deadlock to be found.
  deadlock_timeout: "20ms",
};

/** Every server that tests may share. */
export const SHARED_KINDS = Object.keys(STARTERS).map((kind) => kind as SharedKind);

/** Servers that were started for a run of tests; they end with an `await using`. */
export interface SharedServers extends AsyncDisposable {
  /** The environment by which the tests find them. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the servers of these kinds whose programs are installed, all at the same time. */
export async function startSharedServers(
  kinds: readonly SharedKind[] = SHARED_KINDS,
): Promise<SharedServers> {
  const stack = new AsyncDisposableStack();
  const starts = kinds.filter((kind) => toolAvailable(STARTERS[kind].tool)).map(async (kind) => {
    const { server, place } = await STARTERS[kind].start();
    stack.use(server);
    return [kind, place] as const;
  });
  const settled = await Promise.allSettled(starts);
  const failed = settled.find((start) => start.status === "rejected");
  if (failed !== undefined) {
    await stack.disposeAsync();
    throw failed.reason;
  }
  const places = settled.flatMap((start) => start.status === "fulfilled" ? [start.value] : []);
  return {
    env: { [VARIABLE]: JSON.stringify(Object.fromEntries(places)) },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const started = new Map<SharedKind, Promise<unknown>>();

/** Where the server of this kind is; one is started for this file where the run has none. Absent where it is not installed. */
export async function sharedPlace<Kind extends SharedKind>(
  kind: Kind,
): Promise<SharedPlaces[Kind] | undefined> {
  const places: SharedPlaces = JSON.parse(Deno.env.get(VARIABLE) ?? "{}");
  if (places[kind] !== undefined) return places[kind];
  const starter: Starters[Kind] = STARTERS[kind];
  if (!toolAvailable(starter.tool)) return undefined;
  const start = started.get(kind) ?? startForFile(starter);
  started.set(kind, start);
  return await start as SharedPlaces[Kind];
}

/** Starts a server that ends with the file: a `ChildProcess` does so by itself, but leaves its folder behind. */
async function startForFile(starter: Starters[SharedKind]): Promise<unknown> {
  const { place, folder } = await starter.start();
  if (folder !== undefined) globalThis.addEventListener("unload", () => removeFolder(folder));
  return place;
}

/** Processes of a server that was just killed may still write into it. */
function removeFolder(folder: string): void {
  for (let attempt = 1; attempt <= REMOVE_ATTEMPTS; attempt++) {
    try {
      Deno.removeSync(folder, { recursive: true });
      return;
    } catch (error) {
      if (attempt === REMOVE_ATTEMPTS) throw error;
      // The file is over: there is no event loop left to wait by.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVE_PAUSE_MS);
    }
  }
}

const REMOVE_ATTEMPTS = 200;
const REMOVE_PAUSE_MS = 10;
