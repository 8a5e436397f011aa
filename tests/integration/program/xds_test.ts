import { assertEquals, assertMatch } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { quickClock } from "../../harness/fake_clock.ts";
import { CompressedXds } from "./compressed_xds.ts";
import { freePort } from "../../harness/free_port.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { BAD_TEXT, badConfig, shopConfig, XdsServer } from "../../harness/xds_server.ts";
import { type Env, shopRequest } from "../settings/settings_bed.ts";

/** Short waits, so that a server that comes back is found soon. */
const XDS = {
  CONFIG_TYPE: "GRPC_XDS_SOTW",
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "100ms",
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "100ms",
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: "200ms",
};

const OPEN = shopConfig({ open: 10 });
const BLOCKED = shopConfig({ open: 0 });

async function start(server: XdsServer, env: Env = {}, clock = systemClock): Promise<ServeFixture> {
  return await ServeFixture.start({ env: { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: server.url, ...env }, clock });
}

/** Status of a decision: 200, 429 over the limit, 503 without rules. */
async function decision(weir: ServeFixture): Promise<number> {
  return (await weir.ask(shopRequest("open=a"))).status;
}

async function loads(weir: ServeFixture): Promise<Record<string, number>> {
  const {
    "ratelimit.service.config_load_success": good = 0,
    "ratelimit.service.config_load_error": bad = 0,
  } = await weir.stats();
  return { good, bad };
}

Deno.test("xds: the ports for calls open with the first rules", async () => {
  await using server = new XdsServer({ port: freePort() });
  const env = { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: server.url };
  await using weir = await ServeFixture.begin({ env });
  const hasLine = (text: string) => weir.log.some((line) => line.includes(text));
  await until("an attempt to fail", () => hasLine("Cannot read rules from the configuration server"));
  await server.listen();
  await until("the stream", () => server.streams === 1);
  // It is connected, and still there are no rules.
  assertEquals([hasLine("Listening for gRPC"), hasLine("Listening for HTTP")], [false, false]);
  server.set("1", BLOCKED);
  await weir.opened;
  await until("the acknowledgement", () => server.requests.length === 2);
  assertEquals(server.take().map(({ kind, version }) => `${kind} ${version}`), ["first ", "ack 1"]);
  // Told to, it asks for the version that it has.
  weir.reload();
  await until("it to be asked for", () => server.requests.length === 2);
  assertEquals(server.take().map(({ kind, version }) => `${kind} ${version}`), ["ack ", "ack 1"]);
});

Deno.test("xds: stopped while it waits for the first rules", async () => {
  await using server = await XdsServer.start();
  const env = { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: server.url };
  await using weir = await ServeFixture.begin({ env });
  await until("the stream", () => server.streams === 1);
  await weir.stop();
  assertEquals(weir.log.filter((line) => line.includes("Listening for gRPC")), []);
});

Deno.test("xds: started by force, calls are refused until the first rules", async () => {
  await using server = await XdsServer.start();
  await using weir = await start(server, { FORCE_START_WITHOUT_INITIAL_CONFIG: "true" });
  assertEquals(await decision(weir), 503);
  server.set("1", BLOCKED);
  await until("the rules", async () => await decision(weir) === 429);
});

Deno.test("xds: a good version replaces the rules, a bad one leaves them", async () => {
  await using server = await XdsServer.start();
  server.set("1", OPEN);
  await using weir = await start(server, {}, quickClock);
  const seen = [await decision(weir)];
  server.set("2", BLOCKED);
  await until("version 2", () => server.requests.length >= 3);
  seen.push(await decision(weir));
  server.set("3", badConfig());
  await until("its refusal", () => server.requests.length >= 4);
  seen.push(await decision(weir));
  assertEquals(weir.log.some((line) => line.includes("rate_limit.unit: invalid rate limit unit '99'")), true);
  // The snapshot is sent again immediately; the answer to that is not given in the same breath.
  server.set("4", OPEN);
  await until("version 4", () => server.requests.at(-1)?.version === "4");
  seen.push(await decision(weir));
  assertEquals(seen, [200, 429, 429, 200]);
  const kinds = server.take();
  assertEquals(kinds.slice(0, 4), [
    { kind: "first", version: "", nonce: "" },
    { kind: "ack", version: "1", nonce: "n1" },
    { kind: "ack", version: "2", nonce: "n2" },
    { kind: "nack", version: "2", nonce: "n3", error: BAD_TEXT },
  ]);
  assertEquals(kinds.some(({ kind }) => kind === "stale"), false);
  assertEquals(await loads(weir), { good: 3, bad: 1 });
});

Deno.test("xds: an empty list is a configuration without rules", async () => {
  await using server = await XdsServer.start();
  server.set("1", OPEN);
  await using weir = await start(server, { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true" });
  server.set("2");
  await eventually([3, "ack", "", { good: 2, bad: 0 }], async () => {
    const page = await weir.page("/rlconfig");
    const rules = page.split("\n").filter((line) => !line.startsWith("#")).join("");
    return [server.requests.length, server.requests.at(-1)?.kind, rules, await loads(weir)];
  });
});

const LOSSES: Readonly<Record<string, (server: XdsServer) => void | Promise<void>>> = {
  "a stream that ends": (server) => server.endStreams(),
  "a server that says goodbye": async (server) => {
    server.goAway(50);
    await until("the stream to end", () => server.streams === 0);
    server.stop();
    await server.listen();
  },
  "a server that is started anew": async (server) => {
    server.stop();
    await server.listen();
  },
  "a compressed message without an encoding": (server) => loseToCompressed(server),
  "a compressed message of an unknown encoding": (server) => loseToCompressed(server, "lz4"),
  "bytes that are no message": (server) => server.sendBytes(new Uint8Array([0x0a, 9, 1])),
};

/** In its place a server answers, twice, with what cannot be decompressed. */
async function loseToCompressed(server: XdsServer, encoding?: string): Promise<void> {
  server.stop();
  {
    await using compressed = await CompressedXds.start(server.port, encoding);
    await until("a second attempt", () => compressed.streams >= 2);
  }
  await server.listen();
}

Deno.test("xds: a compressed message without an encoding at start ends the stream, and SIGHUP opens another", async () => {
  const port = freePort();
  const env = {
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${port}`,
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "1h",
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: "1h",
  };
  await using compressed = await CompressedXds.start(port);
  await using weir = await ServeFixture.begin({ env });
  const ends = () => weir.log.filter((line) => line.includes("Cannot read rules from")).length;
  await until("the end of the first stream", () => ends() === 1);
  weir.reload();
  await until("the end of the second stream", () => compressed.streams === 2 && ends() === 2);
  await compressed[Symbol.asyncDispose]();
  await using server = await XdsServer.start({ port });
  server.set("1", OPEN);
  weir.reload();
  await weir.opened;
  assertEquals(await weir.page("/healthcheck"), "OK");
});

Deno.test("xds: after each kind of loss, the version in force is announced, and the rules stay", async () => {
  await Promise.all(
    Object.entries(LOSSES).map(([name, lose]) =>
      checkLoss(lose).catch((cause) => {
        throw new Error(`Cannot go on after ${name}`, { cause });
      })
    ),
  );
});

async function checkLoss(lose: (server: XdsServer) => void | Promise<void>): Promise<void> {
  await using server = await XdsServer.start();
  server.set("1", BLOCKED);
  await using weir = await start(server);
  await until("its acknowledgement", () => server.take().at(-1)?.kind === "ack");
  await lose(server);
  assertEquals(await decision(weir), 429);
  await until("the next stream", () => server.requests.length > 0);
  assertEquals(server.take(), [{ kind: "first", version: "1", nonce: "" }]);
  server.set("2", OPEN);
  await until("version 2", () => server.requests.length > 0);
  assertEquals([server.take().map(({ kind, version }) => `${kind} ${version}`), await decision(weir)], [
    ["ack 2"],
    200,
  ]);
  assertMatch(weir.log.join("\n"), /Cannot read rules from the configuration server/);
}

Deno.test("xds: a huge version ends the stream each time, and the rules stay until a smaller one", async () => {
  await using server = await XdsServer.start();
  server.set("1", BLOCKED);
  await using weir = await start(server);
  server.set("2", shopConfig({}, "x".repeat(5_000_000)));
  const isTold = () => weir.log.filter((line) => line.includes("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES")).length;
  await until("two attempts", () => isTold() >= 2);
  assertEquals(await decision(weir), 429);
  server.set("3", OPEN);
  await until("version 3", () => server.requests.at(-1)?.version === "3");
  assertEquals(await decision(weir), 200);
});
