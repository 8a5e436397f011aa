import { existsSync } from "node:fs";
import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { startMemcached } from "./memcached.ts";
import { type PostgresPlace, PostgresServer } from "./postgres_server.ts";
import { startRedis } from "./redis_server.ts";
import { requireTool, type Tool, toolAvailable } from "./tools.ts";
import { until } from "./until.ts";

/** Addresses of the shared servers that run. */
interface SharedPlaces {
  readonly redis?: { readonly port: number };
  readonly memcached?: { readonly port: number };
  readonly postgres?: PostgresPlace;
  /** Place where it takes the commands of its developer tools, and the folder of its profile. */
  readonly chromium?: { readonly endpoint: string; readonly folder: string };
}

/** A server that tests may share. */
type SharedKind = keyof SharedPlaces;

/** Number of databases of the shared redis-server; each is leased once. */
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
    start: startChromium,
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

/** Debian's command is a script that starts this program as its child, which would outlive a killed script. */
const DEBIAN_CHROMIUM = "/usr/lib/chromium/chromium-headless-shell";
/** Flags with which pages behave the same in the background, and make no requests elsewhere. */
const CHROMIUM_ARGS = [
  // As root, and in containers, it cannot make the sandbox that it would put its own parts in.
  ...["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"],
  ...["--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--enable-automation"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-default-apps"],
  ...["--disable-extensions", "--disable-sync", "--disable-breakpad", "--metrics-recording-only"],
  ...["--disable-field-trial-config", "--disable-client-side-phishing-detection", "--password-store=basic"],
  ...[
    "--disable-features=Translate,HttpsUpgrades,MediaRouter,OptimizationHints,PaintHolding,SpareRendererForSitePerProcess",
  ],
  ...["--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows"],
  ...["--disable-renderer-backgrounding", "--disable-ipc-flooding-protection", "--disable-hang-monitor"],
  ...["--disable-back-forward-cache", "--disable-popup-blocking", "--force-color-profile=srgb"],
  ...["--hide-scrollbars", "--mute-audio", "about:blank"],
  "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/** Starts a Chromium without a window, in its own profile. */
async function startChromium() {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir_chromium_" });
  // Its parts still write into the folder for a moment after its end.
  const remove = () => Deno.remove(folder, { recursive: true }).then(() => true);
  stack.defer(() => until("the end of Chromium's parts", remove).then(() => {}));
  const command = requireTool("chromium-headless-shell");
  const child = stack.use(
    new ChildProcess(existsSync(DEBIAN_CHROMIUM) ? DEBIAN_CHROMIUM : command, {
      args: [`--user-data-dir=${folder}`, ...CHROMIUM_ARGS],
      isSilent: true,
    }),
  );
  const endpoint = await until("Chromium", async () => {
    if (!child.running) return "ended";
    // It writes the file when it listens: its port, and the path of the browser.
    const [port, path] = (await Deno.readTextFile(join(folder, "DevToolsActivePort"))).split("\n");
    return path && `ws://127.0.0.1:${port}${path}`;
  });
  if (endpoint === "ended") throw new Error('Cannot start "chromium": it ended');
  return { server: stack.move(), place: { endpoint, folder }, folder };
}

/** Every server that tests may share. */
export const SHARED_KINDS = Object.keys(STARTERS).map((kind) => kind as SharedKind);

/** Servers that were started for a run of tests; they end with an `await using`. */
interface SharedServers extends AsyncDisposable {
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

/**
 * The address of the server of this kind; one is started for this file if the run has none. Undefined if it is not
 * installed.
 */
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
