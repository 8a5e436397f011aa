import { assertEquals, assertMatch } from "#assert";
import net from "node:net";
import { ChildProcess } from "../../harness/child_process.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { callFields, cancel, greeting, headers, windowUpdate } from "../../harness/h2_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 3}\n",
};

async function page(weir: WeirProcess, path: string): Promise<string> {
  return await (await fetch(`http://${weir.debugAddress}${path}`)).text();
}

async function statistic(weir: WeirProcess, name: string): Promise<number> {
  const line = (await page(weir, "/stats")).split("\n").find((text) => text.startsWith(`${name}: `));
  return Number(line?.slice(name.length + 2));
}

Deno.test("process: streams that are reset while they are being refused end nothing", async () => {
  await using weir = await startWeir({ rules: RULES, env: { GRPC_ENGINE: "grpc-js" } });
  for (let connection = 0; connection < 10; connection++) await resetStreams(weir.grpcAddress);
  using client = new GrpcClient(weir.grpcAddress);
  const answer = await decide(client, "shop", "user=bob");
  assertEquals("overallCode" in answer && answer.overallCode, 1);
  assertEquals(await statistic(weir, "ratelimit.process.unexpected_errors"), 0);
  // The library throws outside every handler here; a day without that is a day to drop the guard.
  assertEquals(await statistic(weir, "ratelimit.process.socket_errors") > 0, true);
  assertMatch(await page(weir, "/healthcheck"), /^OK$/);
  assertEquals(await weir.stop(), 0);
});

/** Opens streams with a wrong content type, resets each immediately, and then breaks the connection. */
async function resetStreams(address: string): Promise<void> {
  const [host = "", port = ""] = address.split(":");
  const socket = net.connect({ host, port: Number(port) });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  const answered = new Promise<void>((resolve) => socket.once("data", () => resolve()));
  socket.write(greeting());
  await answered;
  const fields = callFields(SHOULD_RATE_LIMIT, { "content-type": "text/plain" });
  for (let streamId = 1; streamId < 100; streamId += 2) {
    socket.write(headers(streamId, fields));
    socket.write(cancel(streamId));
  }
  // An increment of 0 is a connection error, which destroys the streams that are being answered.
  socket.write(windowUpdate(0, 0));
  await closed;
}

// An error that reached the process level would fail these tests: nothing here catches it.
Deno.test("process: garbage and broken connections on every port end nothing", async () => {
  await using weir = await ServeFixture.start({ rules: RULES });
  const garbage = [
    "\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"\xff".repeat(64)}`,
    "\x16\x03\x01\x02\x00\x01\x00",
  ];
  const { grpc, http, debug } = weir.running.addresses;
  for (const address of [grpc, http, debug]) {
    for (const text of garbage) await sendAndBreak(address, text);
  }
  using client = new GrpcClient(grpc);
  assertEquals("overallCode" in await decide(client, "shop", "user=bob"), true);
  assertEquals(await weir.page("/healthcheck"), "OK");
});

Deno.test("process: HTTP/1.1 on the gRPC port is refused, and the log names the remedy", async () => {
  await using weir = await ServeFixture.start({ rules: RULES });
  const [host = "", port = ""] = weir.running.addresses.grpc.split(":");
  const socket = net.connect({ host, port: Number(port) });
  const closed = new Promise<void>((resolve) => socket.on("error", () => {}).on("close", () => resolve()));
  socket.resume().write("POST /envoy HTTP/1.1\r\nhost: weir\r\n\r\n");
  await closed;
  const refusal = () => weir.log.find((line) => line.includes("HTTP/1.1"));
  assertMatch(
    await until("the refusal in the log", refusal) ?? "",
    / level=warning msg="gRPC client refused: it uses HTTP\/1\.1, but gRPC requires HTTP\/2; in Envoy, set http2_protocol_options .*" peer="127\.0\.0\.1"$/,
  );
});

/** Sends a text and resets the connection as soon as it is out. */
async function sendAndBreak(address: string, text: string): Promise<void> {
  const [host = "", port = ""] = address.split(":");
  const socket = net.connect({ host, port: Number(port) });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  await new Promise<void>((resolve) => socket.write(text, "latin1", () => resolve()));
  socket.resetAndDestroy();
  await closed;
}

Deno.test("process: a key-value cache that breaks every connection in another way ends nothing", async () => {
  let connections = 0;
  const open = new Set<net.Socket>();
  const hostile = net.createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
    breakConnection(socket, connections++ % 6);
  });
  await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
  const bound = hostile.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  {
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: `127.0.0.1:${port}`,
      KV_AUTH: "user:secret-word",
      KV_TIMEOUT: "20ms",
      KV_STARTUP_INITIAL_INTERVAL: "10ms",
      KV_STARTUP_MAX_INTERVAL: "10ms",
    };
    await using weir = await ServeFixture.start({ rules: RULES, env });
    using client = new GrpcClient(weir.running.addresses.grpc);
    while (connections < 7) {
      const answer = await decide(client, "shop", "user=bob");
      assertEquals("code" in answer && answer.code, 14);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await weir.stop();
    assertEquals(weir.log.filter((line) => line.includes("secret-word")), []);
  }
  for (const socket of open) socket.destroy();
  await new Promise((resolve) => hostile.close(resolve));
});

function breakConnection(socket: net.Socket, way: number): void {
  if (way === 0) socket.resetAndDestroy();
  else if (way === 1) socket.once("data", () => socket.resetAndDestroy());
  else if (way === 2) socket.once("data", () => socket.end("-ERR no\r\n-ERR no\r\n"));
  else if (way === 3) socket.write("\x00\xff garbage \r\n:12\r\n");
  else if (way === 4) socket.on("data", () => {});
  else socket.end();
}

Deno.test("process: SIGHUP reads the rules again, and signals to stop that come together are one", async () => {
  const env = { RUNTIME_WATCH_ROOT: "true", LOG_FORMAT: "json", SHUTDOWN_DELAY: "10ms" };
  await using weir = await startWeir({ rules: RULES, env });
  assertMatch(await page(weir, "/rlconfig"), /requests_per_unit=3,/);
  await Deno.writeTextFile(`${weir.rulesFolder}/shop.yaml`, RULES["shop.yaml"].replace("3}", "8}"));
  weir.signal("SIGHUP");
  await until("the new rules", async () => (await page(weir, "/rlconfig")).includes("requests_per_unit=8,"));
  await Deno.writeTextFile(`${weir.rulesFolder}/shop.yaml`, RULES["shop.yaml"].replace("day", "fortnight"));
  weir.signal("SIGHUP");
  const name = "ratelimit.service.config_load_error";
  await until("the refusal", async () => await statistic(weir, name) >= 1);
  await until(
    "the rules before",
    async () => (await page(weir, "/rlconfig")).includes("requests_per_unit=8,"),
  );
  // Two of a kind might arrive as one.
  for (const signal of ["SIGINT", "SIGTERM", "SIGINT"] as const) weir.signal(signal);
  assertEquals((await weir.exited).code, 0);
  const messages = weir.stderrLines.map((line): string => JSON.parse(line)["@message"]);
  const found = messages.filter((message) => message.includes("invalid rate limit unit 'fortnight'"));
  assertMatch(found[0] ?? "", /\/config\/shop\.yaml:4:22: descriptors\[0\]\.rate_limit\.unit: /);
  assertEquals(messages.filter((message) => /^(?:Stop|Ending)/.test(message)), ["Stopping", "Stopped"]);
});

Deno.test("process: a later signal ends it immediately, and the log says so", async () => {
  await using weir = await startWeir({ rules: RULES, env: { SHUTDOWN_DELAY: "10m" } });
  for (const name of ["SIGTERM", "SIGINT"] as const) weir.signal(name);
  await until("the end to begin", () => weir.stderrLines.some((line) => line.includes("Stopping")));
  let isOver = false;
  const exited = weir.exited.finally(() => isOver = true);
  await until("the end", () => {
    weir.signal("SIGINT");
    return isOver;
  });
  assertEquals((await exited).code, 1);
  assertMatch(
    weir.stderrLines.at(-1) ?? "",
    /level=warning msg="Exiting immediately: second signal to stop"$/,
  );
});

Deno.test("process: settings that are refused are reported with the names that were read instead", async () => {
  const line = weirCommand(["serve"]);
  const env = {
    ...runtimeEnvironment(line),
    REDIS_TIMEOUT: "soon",
    MEMCACHE_TLS: "true",
    LOG_LEVEL: "loud",
  };
  await using child = new ChildProcess(line.command, { args: line.args, env });
  const { code } = await child.exited;
  assertEquals([code, child.stderrLines], [2, [
    "MC_TLS is set from MEMCACHE_TLS",
    "KV_TIMEOUT is set from REDIS_TIMEOUT",
    'Invalid LOG_LEVEL "loud": expected trace, debug, info, warning, error, fatal or panic',
    'Invalid KV_TIMEOUT "soon" (set from REDIS_TIMEOUT): expected a duration of 1ms or more, such as 10s, 150us or 1m30s',
    "KV_URL is not set: expected KV_URL=host:port, or BACKEND_TYPE=memory to count only in this process",
  ]]);
});

Deno.test("process: without rules only the debug port is open, and the position of the mistake is logged", async () => {
  const rules = { "bad.yaml": "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day}\n" };
  await using weir = await ServeFixture.begin({ rules });
  await until("the mistake", () => weir.log.some((line) => line.includes("bad.yaml:4:15")));
  const pages = ["/healthcheck", "/livez"].map(async (path) => {
    const response = await fetch(`http://${weir.debugAddress}${path}`);
    return [response.status, await response.text()];
  });
  const reason =
    "start: waiting for valid rules: bad.yaml:4:15: descriptors[0].rate_limit.requests_per_unit: " +
    "expected a whole number from 0 to 4294967295 (0 blocks every request), or 'unlimited: true'; got nothing\n";
  assertEquals(await Promise.all(pages), [[503, reason], [200, "OK"]]);
  assertEquals(weir.log.filter((line) => /Listening for (?:gRPC|HTTP)/.test(line)), []);
  await Deno.writeTextFile(`${weir.rulesFolder}/bad.yaml`, "domain: d\ndescriptors: []\n");
  weir.reload();
  await weir.opened;
  assertEquals(await weir.page("/healthcheck"), "OK");
});

Deno.test("process: without rules a forced start answers UNAVAILABLE until they are there", async () => {
  const env = { FORCE_START_WITHOUT_INITIAL_CONFIG: "true", HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true" };
  const rules = { "bad.yaml": "domain: d\ndescriptors: 1\n" };
  await using weir = await ServeFixture.start({ rules, env });
  using client = new GrpcClient(weir.running.addresses.grpc);
  const answer = await decide(client, "d", "k=v");
  assertEquals("code" in answer && [answer.code, answer.details], [14, "no rate limit configuration loaded"]);
  const json = await weir.ask('{"domain":"d","descriptors":[{"entries":[]}]}');
  assertEquals([json.status, Object(json.body).reason], [503, "no rate limit configuration loaded"]);
  assertMatch(await weir.page("/healthcheck"), /^config: /);
  await Deno.writeTextFile(`${weir.rulesFolder}/bad.yaml`, "domain: d\ndescriptors: []\n");
  await until("a decision", async () => "overallCode" in await decide(client, "d", "k=v"));
  await eventually("OK", () => weir.page("/healthcheck"));
});

const PROFILE_MS = 2_000;

Deno.test("process: a profile of a loaded service has samples of the decision path", async () => {
  const clock = new FakeClock();
  await using weir = await ServeFixture.start({ rules: RULES, clock });
  using client = new GrpcClient(weir.running.addresses.grpc);
  const waits = () => clock.waits.filter((ms) => ms === PROFILE_MS).length;
  const before = waits();
  const text = weir.page(`/debug/pprof/profile?seconds=${PROFILE_MS / 1_000}`);
  // Not any wait: a connection has its own.
  await until("the recording to begin", () => waits() > before);
  const calls = Array.from({ length: 300 }, (_, caller) => decide(client, "shop", `user=${caller}`));
  await Promise.all(calls);
  clock.advance(PROFILE_MS);
  const profile = JSON.parse(await text);
  const names = new Set(
    profile.nodes.map((node: { callFrame: { functionName: string } }) => node.callFrame.functionName),
  );
  const decisionPath = ["shouldRateLimit", "planHits", "decide", "decodeRateLimitRequest"].filter((name) =>
    names.has(name)
  );
  assertEquals([profile.samples.length > 20, decisionPath.length > 0], [true, true], [...names].join(" "));
});
