import { assertEquals } from "@std/assert";
import { ServerCredentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import type { Certificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { shopConfig, XdsServer } from "../../harness/xds_server.ts";
import { compare, type Env, type SettingCases, Shared, SHOP } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";

/** Tests of the settings of the configuration server. */
export const XDS_CASES: SettingCases = {
  CONFIG_TYPE: { sees: "the rules of a configuration server in place of files", run: comparesType },
  CONFIG_GRPC_XDS_SERVER_URL: { sees: "a server that is asked", run: asksServer },
  CONFIG_GRPC_XDS_NODE_ID: {
    sees: "another node that asks",
    run: () => comparesNode({ CONFIG_GRPC_XDS_NODE_ID: "edge-7" }, { id: "default" }, { id: "edge-7" }),
  },
  CONFIG_GRPC_XDS_NODE_METADATA: {
    sees: "metadata of the node",
    run: () => {
      const metadata = { zone: "a=b", tier: "one" };
      const changed = { CONFIG_GRPC_XDS_NODE_METADATA: "zone=a=b, tier=one" };
      return comparesNode(changed, { id: "default" }, { id: "default", metadata });
    },
  },
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: { sees: "headers of the stream", run: sendsHeaders },
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: {
    sees: "another wait after a stream that delivered",
    run: async () => {
      const changed = { CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "7s" };
      assertEquals([await waitAfterStream({}), await waitAfterStream(changed)], [3, 7]);
    },
  },
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: {
    sees: "another first wait of an outage",
    run: () => comparesWait({ XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "7s" }, 10, 7),
  },
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: {
    sees: "a wait that is no longer",
    run: () => comparesWait({ XDS_CLIENT_BACKOFF_MAX_INTERVAL: "8s" }, 10, 8),
  },
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: {
    sees: "waits without spread",
    run: () => comparesSpread({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "0" }),
  },
  XDS_CLIENT_BACKOFF_JITTER: {
    sees: "waits without spread",
    run: () => comparesSpread({ XDS_CLIENT_BACKOFF_JITTER: "false" }),
  },
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: { sees: "larger and smaller messages taken", run: boundsMessages },
  CONFIG_GRPC_XDS_SERVER_USE_TLS: {
    sees: "a server that speaks TLS",
    tools: ["openssl"],
    run: () =>
      comparesTls({ CONFIG_GRPC_XDS_SERVER_USE_TLS: "true" }, {
        env: ({ authority }) => ({ CONFIG_GRPC_XDS_SERVER_TLS_CACERT: authority.certFile }),
      }),
  },
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: {
    sees: "a server of an authority of our own",
    tools: ["openssl"],
    run: () =>
      comparesTls(({ authority }) => ({ CONFIG_GRPC_XDS_SERVER_TLS_CACERT: authority.certFile }), {
        env: () => ({ CONFIG_GRPC_XDS_SERVER_USE_TLS: "true" }),
      }),
  },
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: {
    sees: "a server of another name",
    tools: ["openssl"],
    run: () =>
      comparesTls({ CONFIG_GRPC_XDS_SERVER_TLS_SAN: "elsewhere.test" }, {
        env: trusting,
        named: "elsewhere",
      }),
  },
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: { sees: "a certificate shown", tools: ["openssl"], run: showsCertificate },
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: { sees: "the key of that", tools: ["openssl"], run: showsCertificate },
};

const XDS = { CONFIG_TYPE: "GRPC_XDS_SOTW", FORCE_START_WITHOUT_INITIAL_CONFIG: "true" };
/** How long the library's own timers run on after a connection that was not made; waited for after the last test. */
const TIMERS_MS = 400;

/** Ends after the timers that the tests leave to the library. */
export const CLIENT_TIMERS = new Shared([], (stack) => {
  stack.defer(() => new Promise((resolve) => setTimeout(resolve, TIMERS_MS)));
  return Promise.resolve();
});

/** What the settings ask is seen by what a server sends or takes. */
async function withServer(
  env: Env,
  work: (weir: ServeFixture, server: XdsServer) => Promise<void>,
): Promise<void> {
  await using server = await XdsServer.start();
  server.set("1", shopConfig({ open: 1 }));
  const own = { ...XDS, FORCE_START_WITHOUT_INITIAL_CONFIG: "false", CONFIG_GRPC_XDS_SERVER_URL: server.url };
  await using weir = await ServeFixture.start({ env: { ...own, ...env } });
  await work(weir, server);
}

/** The waits of a few tenths of a second end immediately. */
const HURRIED: Clock = {
  ...systemClock,
  after: (ms, run) => systemClock.after(ms >= 100 && ms <= 300 ? 0 : ms, run),
};

/** Nobody is there; answers the waits that the log tells of, this many. */
async function waitsOf(env: Env, count: number): Promise<number[]> {
  const url = `127.0.0.1:${freePort()}`;
  const all = { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: url, ...env };
  await using weir = await ServeFixture.start({ env: all, clock: HURRIED });
  await until("the waits", () => waitsIn(weir).length >= count);
  return waitsIn(weir).slice(0, count);
}

function waitsIn({ log }: ServeFixture): number[] {
  return log.flatMap((line) => {
    const [, seconds] = /Cannot read rules from .* retrySeconds=([0-9.]+)/.exec(line) ?? [];
    return seconds === undefined ? [] : [Number(seconds)];
  });
}

async function comparesType(): Promise<void> {
  await using server = await XdsServer.start();
  server.set("1", shopConfig({ other: 1 }));
  await compare({ CONFIG_TYPE: "GRPC_XDS_SOTW" }, {
    env: { CONFIG_GRPC_XDS_SERVER_URL: server.url },
    rules: SHOP,
    look: async (weir) => (await weir.page("/rlconfig")).includes("shop.other:"),
    unset: false,
    set: true,
  });
}

async function asksServer(): Promise<void> {
  await withServer({}, async (weir) => {
    assertEquals((await weir.page("/rlconfig")).includes("shop.open:"), true);
  });
}

async function comparesNode(changed: Env, unset: unknown, set: unknown): Promise<void> {
  const seen: unknown[] = [];
  for (const env of [{}, changed]) {
    await withServer(env, (_, { raw }) => {
      const { id, metadata = {} } = raw[0]?.node ?? {};
      seen.push(Object.keys(metadata).length === 0 ? { id } : { id, metadata });
      return Promise.resolve();
    });
  }
  assertEquals(seen, [unset, set]);
}

async function sendsHeaders(): Promise<void> {
  const text = "authorization:Bearer a:b,x-team: edge";
  await withServer({ CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: text }, (weir, { headers }) => {
    const [own] = headers;
    assertEquals([own?.get("authorization"), own?.get("x-team")], [["Bearer a:b"], ["edge"]]);
    assertEquals(weir.log.some((line) => line.includes("Bearer")), false);
    return Promise.resolve();
  });
}

async function waitAfterStream(env: Env): Promise<number | undefined> {
  let wait: number | undefined;
  await withServer(env, async (weir, server) => {
    server.endStreams();
    wait = await until("the wait", () => waitsIn(weir)[0]);
  });
  return wait;
}

async function comparesWait(changed: Env, unset: number, set: number): Promise<void> {
  const plain = { XDS_CLIENT_BACKOFF_JITTER: "false" };
  const waits = await Promise.all([waitsOf(plain, 1), waitsOf({ ...plain, ...changed }, 1)]);
  assertEquals(waits, [[unset], [set]]);
}

async function comparesSpread(changed: Env): Promise<void> {
  const short = { XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "200ms", XDS_CLIENT_BACKOFF_MAX_INTERVAL: "300ms" };
  const [spread, plain] = await Promise.all([waitsOf(short, 3), waitsOf({ ...short, ...changed }, 3)]);
  // The first one has room on both sides; the longest wait holds for the others.
  const isSpread = spread[0] !== 0.2 && spread.every((wait) => wait >= 0.1 && wait <= 0.3);
  assertEquals([isSpread, plain], [true, [0.2, 0.3, 0.3]]);
}

async function boundsMessages(): Promise<void> {
  const names = { small: 500_000, large: 5_000_000 };
  const taken = async (bytes: number, env: Env) => {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({}, "x".repeat(bytes), "shop"));
    return await arrives(server, env);
  };
  const limit = (bytes: string) => ({ XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: bytes });
  assertEquals(
    await Promise.all([
      taken(names.small, {}),
      taken(names.large, {}),
      taken(names.small, limit("400000")),
      taken(names.large, limit("6000000")),
    ]),
    [true, false, false, true],
  );
}

/** Whether rules come, or it is told that they cannot. */
async function arrives(server: XdsServer, env: Env): Promise<boolean> {
  await using weir = await ServeFixture.start({
    env: { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: server.url, LOG_LEVEL: "info", ...env },
  });
  const has = (text: string) => weir.log.some((line) => line.includes(text));
  await until("an outcome", () => has("Rules loaded") || waitsIn(weir).length > 0);
  return has("Rules loaded");
}

type EnvOf = (certificates: Certificates) => Env;

function trusting({ authority }: Certificates): Env {
  return {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: authority.certFile,
  };
}

/** Without the changed settings nothing comes from a server with TLS, with them the rules do. */
async function comparesTls(
  changed: Env | EnvOf,
  { env, named = "server", asks = false }: {
    readonly env: EnvOf;
    readonly named?: "server" | "elsewhere";
    readonly asks?: boolean;
  },
): Promise<void> {
  const all = CERTIFICATES.value;
  const [ca, cert, key] = await Promise.all(
    [all.authority.certFile, all[named].certFile, all[named].keyFile].map((path) => Deno.readFile(path)),
  );
  if (ca === undefined || cert === undefined || key === undefined) throw new Error("Cannot read: no files");
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  const credentials = ServerCredentials.createSsl(Buffer.from(ca), [pair], asks);
  await using server = await XdsServer.start({ credentials });
  server.set("1", shopConfig({}));
  const more = typeof changed === "function" ? changed(all) : changed;
  const base = env(all);
  const arrived = await Promise.all([arrives(server, base), arrives(server, { ...base, ...more })]);
  assertEquals(arrived, [false, true]);
}

async function showsCertificate(): Promise<void> {
  const pair = ({ client }: Certificates) => ({
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: client.certFile,
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: client.keyFile,
  });
  await comparesTls(pair, { env: trusting, asks: true });
}
