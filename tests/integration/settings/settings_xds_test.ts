import { assertEquals } from "#assert";
import { ServerCredentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { makeCertificates } from "../../harness/certificates.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { shopConfig, XdsServer } from "../../harness/xds_server.ts";
import { compare, type Env } from "./settings_bed.ts";

const XDS = { CONFIG_TYPE: "GRPC_XDS_SOTW", FORCE_START_WITHOUT_INITIAL_CONFIG: "true" };
/** Nothing listens there, and no test can be given this port. */
const NOWHERE = "127.0.0.1:1";

function xdsTest(name: string, fn: () => Promise<void>): void {
  Deno.test(`setting ${name}`, fn);
}

async function startXds(url: string, env: Env = {}): Promise<ServeFixture> {
  return await ServeFixture.start({ env: { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: url, ...env } });
}

/** The waits before further attempts that the log tells of, in seconds. */
function waitsIn({ log }: ServeFixture): number[] {
  return log.flatMap((line) => {
    const [, seconds] = /Cannot read rules from .* retrySeconds=([0-9.]+)/.exec(line) ?? [];
    return seconds === undefined ? [] : [Number(seconds)];
  });
}

/** True if rules come, or it is reported that they cannot. */
async function arrives(server: XdsServer, env: Env): Promise<boolean> {
  await using weir = await startXds(server.url, { LOG_LEVEL: "info", ...env });
  const has = (text: string) => weir.log.some((line) => line.includes(text));
  await until("an outcome", () => has("Rules loaded") || waitsIn(weir).length > 0);
  return has("Rules loaded");
}

xdsTest(
  "CONFIG_TYPE, CONFIG_GRPC_XDS_SERVER_URL: the rules of a configuration server in place of files",
  async () => {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({ other: 1 }));
    await compare({ CONFIG_TYPE: "GRPC_XDS_SOTW" }, {
      env: { CONFIG_GRPC_XDS_SERVER_URL: server.url },
      look: async (weir) => (await weir.page("/rlconfig")).includes("shop.other:"),
      unset: false,
      set: true,
    });
  },
);

xdsTest("CONFIG_GRPC_XDS_NODE_…, CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: who asks", async () => {
  const seen: unknown[] = [];
  const own = {
    CONFIG_GRPC_XDS_NODE_ID: "edge-7",
    CONFIG_GRPC_XDS_NODE_METADATA: "zone=a=b, tier=one",
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: "authorization:Bearer a:b,x-team: edge",
  };
  for (const env of [{}, own]) {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({ open: 1 }));
    await using weir = await startXds(server.url, { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: "false" });
    const { id, metadata = {} } = server.raw[0]?.node ?? {};
    const [headers] = server.headers;
    seen.push({ id, ...metadata, headers: [headers?.get("authorization"), headers?.get("x-team")] });
    assertEquals(weir.log.some((line) => line.includes("Bearer")), false);
  }
  assertEquals(seen, [
    { id: "default", headers: [[], []] },
    { id: "edge-7", zone: "a=b", tier: "one", headers: [["Bearer a:b"], ["edge"]] },
  ]);
});

xdsTest("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: the wait after a stream that delivered", async () => {
  const waits = [];
  for (const env of [{}, { CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "7s" }]) {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({ open: 1 }));
    await using weir = await startXds(server.url, { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: "false" });
    server.endStreams();
    waits.push(await until("the wait", () => waitsIn(weir)[0]));
  }
  assertEquals(waits, [3, 7]);
});

/** Settings of the waits during an outage, and what the first one is. */
const WAITS: readonly (readonly [env: Env, seconds: number])[] = [
  [{ XDS_CLIENT_BACKOFF_JITTER: "false" }, 10],
  [{ XDS_CLIENT_BACKOFF_JITTER: "false", XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "7s" }, 7],
  [{ XDS_CLIENT_BACKOFF_JITTER: "false", XDS_CLIENT_BACKOFF_MAX_INTERVAL: "8s" }, 8],
  [{ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "0" }, 10],
];

for (const [env, seconds] of WAITS) {
  xdsTest(`${JSON.stringify(env)}: a first wait of ${seconds} s`, async () => {
    await using weir = await startXds(NOWHERE, env);
    assertEquals(await until("the wait", () => waitsIn(weir)[0]), seconds);
  });
}

xdsTest(
  "XDS_CLIENT_BACKOFF_JITTER, XDS_CLIENT_BACKOFF_RANDOM_FACTOR: by default a wait is left to chance",
  async () => {
    const waits: number[] = [];
    // Of each one in ten thousand is the middle of the range.
    for (let service = 0; service < 4; service++) {
      await using weir = await startXds(NOWHERE);
      waits.push(await until("the wait", () => waitsIn(weir)[0]));
    }
    assertEquals([waits.every((wait) => wait >= 5 && wait <= 15), waits.some((wait) => wait !== 10)], [
      true,
      true,
    ]);
  },
);

xdsTest("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: larger and smaller messages taken", async () => {
  const isTaken = async (bytes: number, limit = "") => {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({}, "x".repeat(bytes), "shop"));
    return await arrives(server, { XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: limit });
  };
  assertEquals([await isTaken(500_000), await isTaken(5_000_000)], [true, false]);
  assertEquals([await isTaken(500_000, "400000"), await isTaken(5_000_000, "6000000")], [false, true]);
});

Deno.test({
  ...needs(
    ["openssl"],
    "settings CONFIG_GRPC_XDS_…_TLS_…: rules come with all of them, and not without any of them",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, elsewhere, client } = certificates;
    const [ca, cert, key] = await Promise.all(
      [authority.certFile, elsewhere.certFile, elsewhere.keyFile].map(async (path) =>
        Buffer.from(await Deno.readFile(path))
      ),
    );
    if (ca === undefined || cert === undefined || key === undefined) throw new Error("There are no files");
    const credentials = ServerCredentials.createSsl(ca, [{ cert_chain: cert, private_key: key }], true);
    await using server = await XdsServer.start({ credentials });
    server.set("1", shopConfig({}));
    const all = {
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: authority.certFile,
      CONFIG_GRPC_XDS_SERVER_TLS_SAN: "elsewhere.test",
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: client.certFile,
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: client.keyFile,
    };
    const changes: readonly Env[] = [
      {},
      { CONFIG_GRPC_XDS_SERVER_USE_TLS: "" },
      { CONFIG_GRPC_XDS_SERVER_TLS_CACERT: "" },
      { CONFIG_GRPC_XDS_SERVER_TLS_SAN: "" },
      { CONFIG_GRPC_XDS_CLIENT_TLS_CERT: "", CONFIG_GRPC_XDS_CLIENT_TLS_KEY: "" },
    ];
    const arrived = [];
    for (const change of changes) arrived.push(await arrives(server, { ...all, ...change }));
    assertEquals(arrived, [true, false, false, false, false]);
  },
});
