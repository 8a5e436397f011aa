import { assert, assertEquals, assertMatch } from "#assert";
import { decodeRateLimitRequest, encodeRateLimitResponse } from "../../../src/wire/rls.ts";
import { type Ran, ran, words } from "../../harness/administration_fixture.ts";
import { RULES } from "../../harness/bench_rules.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { startGrpcPeer } from "../../harness/grpc_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";
import { startWeir } from "../../harness/weir_process.ts";

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HITS = "ratelimit.service.rate_limit.bench.load_keys.key.total_hits";
const SHORT = "--seconds 1 --warm-up 0 --connections 2 --in-flight 4 --keys 20";
const ENDLESS = "--seconds 600 --warm-up 0 --connections 2 --in-flight 4";
const LONG = `${ENDLESS} --output json`;
const SHOP = `domain: shop
descriptors:
  - key: account
    rate_limit: { unit: year, requests_per_unit: 5 }
`;

Deno.test("bench makes real calls: the service counts each of them", async () => {
  await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
  const { code, stdout, stderr } = await ran(`bench --addr ${weir.grpcAddress} ${SHORT} --output json`);
  const report = JSON.parse(stdout);
  assertEquals([code, stderr], [0, `Calling ${weir.grpcAddress} for 0 s + 1 s: 2 x 4 calls\n`]);
  const { calls, seconds, callsPerSecond, generatorBusy, latencyMs, histogram, ...others } = report;
  assertEquals(others, {
    address: weir.grpcAddress,
    domain: "bench",
    connections: 2,
    inFlight: 4,
    keys: 20,
    rate: null,
    isInterrupted: false,
    errors: {},
    decisions: { UNKNOWN: 0, OK: calls, OVER_LIMIT: 0, withoutLimit: 0 },
  });
  assert(calls > 0 && Math.abs(callsPerSecond * seconds - calls) < 0.01, stdout);
  assert(generatorBusy > 0);
  const ascending = [latencyMs.p50, latencyMs.p90, latencyMs.p99, latencyMs["p99.9"], latencyMs.max];
  assertEquals(ascending, ascending.toSorted((a, b) => a - b));
  const sum = histogram.reduce((total: number, row: { calls: number }) => total + row.calls, 0);
  assertEquals([sum, (await weir.stats())[HITS]], [calls, calls]);
});

Deno.test("bench prints a table, and the shares of the decisions", async () => {
  await using weir = await ServeFixture.start({ rules: { "shop.yaml": SHOP } });
  const line =
    `bench --addr ${weir.grpcAddress} ${ENDLESS} --keys 20 --domain shop --descriptors account={key}`;
  const limited = await endedAfter(110, weir, `${line} --output=json`);
  const { calls, decisions } = JSON.parse(limited.stdout);
  // 5 for each of 20 keys.
  assertEquals(decisions, { UNKNOWN: 0, OK: 100, OVER_LIMIT: calls - 100, withoutLimit: 0 });
  const { code, stdout } = await endedAfter(10, weir, line);
  assertEquals(code, 0);
  const shown = stdout.replaceAll(/\d+(?:,\d{3})*(?:\.\d+)?/g, "N").replaceAll(/#+/g, "#").replaceAll(
    / +/g,
    " ",
  );
  const head = [
    "calls N, of which N measured in N s",
    "throughput N calls/s",
    "latency pN N ms, pN N ms, pN N ms, pN N ms, max N ms",
    "decisions OK N %, OVER_LIMIT N %; without a limit N %",
    "generator N % of one core",
  ];
  assertEquals(shown.split("\n").slice(0, head.length), head);
  assertMatch(shown, /^up to N ms N %( #)?$/m);
});

Deno.test("bench reports that no limit applied: a wrong domain, or wrong descriptors", async () => {
  await using weir = await ServeFixture.start({ rules: { "shop.yaml": SHOP } });
  for (const flags of ["--domain wrong", "--domain shop --descriptors a={key}"]) {
    const { code, stdout } = await ran(`bench --addr ${weir.grpcAddress} ${SHORT} ${flags}`);
    assertEquals(code, 0);
    assertMatch(stdout, /without a limit 100\.0 %/);
    assertMatch(stdout, /^No limit applied to any call: check --domain \w+ and --descriptors\.$/m);
  }
});

Deno.test("bench sends keys in turn, or at random in an order that the seed repeats", async () => {
  const sent: string[] = [];
  const answer = (request: Uint8Array) => {
    const { domain, descriptors } = decodeRateLimitRequest(request);
    sent.push(
      [domain, ...descriptors.map(({ entries }) => entries.map(({ key, value }) => `${key}=${value}`))]
        .join(),
    );
    const statuses = descriptors.map(() => ({ code: 1, limitRemaining: 0 }));
    return encodeRateLimitResponse({ overallCode: 1, statuses, responseHeadersToAdd: [] });
  };
  using peer = await startGrpcPeer(METHOD, { answer });
  const calls = async (more: string) => {
    sent.length = 0;
    const stop = new AbortController();
    const one = "--connections 1 --in-flight 1 --warm-up 0 --seconds 600";
    const ended = ran(`bench --addr 127.0.0.1:${peer.port} ${one} ${more}`, { stop: stop.signal });
    await until("some calls", () => sent.length >= 12);
    stop.abort();
    const { stderr, code } = await ended;
    assertEquals(code, 0, stderr);
    return sent.slice(0, 12);
  };
  const two = "--descriptors {key}=x,b={key}{key} --descriptors c=d --keys 2";
  assertEquals((await calls(`--domain d ${two}`)).slice(0, 3), [
    "d,k0=x,b=k0k0,c=d",
    "d,k1=x,b=k1k1,c=d",
    "d,k0=x,b=k0k0,c=d",
  ]);
  assertEquals(new Set(await calls("--descriptors c=d")), new Set(["bench,c=d"]));
  const seeded = "--descriptors a={key} --keys 1000 --seed";
  const first = await calls(`${seeded} 1`);
  const again = await calls(`${seeded} 1`);
  const other = await calls(`${seeded} 2`);
  assertEquals(first, again);
  assert(first.join() !== other.join() && new Set(first).size > 6, first.join());
});

Deno.test("bench keeps a constant rate", async () => {
  await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
  const rated = "--rate 200 --seconds 2 --warm-up 0 --output json";
  const { code, stdout } = await ran(`bench --addr ${weir.grpcAddress} ${rated}`);
  const { calls, rate } = JSON.parse(stdout);
  assertEquals([code, rate, calls > 0 && calls <= 400], [0, 200, true]);
});

Deno.test({
  ...needs(["openssl"], "bench over TLS: authorities, client certificates, and what is missing"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server, authority, otherAuthority, client } = certificates;
    const tls = {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
    };
    await using plain = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
    await using secure = await ServeFixture.start({ rules: { "bench.yaml": RULES }, env: tls });
    await using mutual = await ServeFixture.start({
      rules: { "bench.yaml": RULES },
      env: { ...tls, GRPC_CLIENT_TLS_CACERT: authority.certFile },
    });
    const trust = `--tls --ca ${authority.certFile}`;
    const own = `--cert ${client.certFile} --key ${client.keyFile}`;
    const tlsNeeded = /: .*; does the port use TLS, or require a client certificate\?/;
    const noTls = /: .*; is it a gRPC port, and does it use TLS only if --tls is set\?/;
    const cases: Readonly<Record<string, readonly [address: string, flags: string, problem?: RegExp]>> = {
      "TLS": [secure.grpcAddress, trust],
      "no TLS": [plain.grpcAddress, ""],
      "a client certificate": [mutual.grpcAddress, `${trust} ${own}`],
      "no client certificate": [mutual.grpcAddress, trust, tlsNeeded],
      "no TLS on a port with TLS": [secure.grpcAddress, "", tlsNeeded],
      "TLS on a port without": [plain.grpcAddress, trust, noTls],
      "another authority": [
        secure.grpcAddress,
        `--tls --ca ${otherAuthority.certFile}`,
        /certificate|UnknownIssuer/,
      ],
      "no gRPC port": [plain.httpAddress, "", /is it a gRPC port/],
    };
    for (const [name, [address, flags, problem]] of Object.entries(cases)) {
      const { code, stdout, stderr } = await ran(`bench --addr ${address} ${SHORT} ${flags} --output json`);
      const lines = stderr.trimEnd().split("\n");
      if (problem === undefined) {
        assertEquals([name, code, JSON.parse(stdout).errors, lines.length], [name, 0, {}, 1], stderr);
      } else {
        assertEquals([name, code, stdout], [name, 1, ""]);
        assertMatch(lines.at(-1) ?? "", problem, name);
      }
    }
  },
});

Deno.test("bench of a refused connection", async () => {
  const addr = `127.0.0.1:${freePort()}`;
  const { code, stdout, stderr } = await ran(`bench --addr ${addr} ${SHORT}`);
  assertEquals([code, stdout, stderr.split("\n").at(-2)], [
    1,
    "",
    `Cannot call "${addr}": connection refused`,
  ]);
});

Deno.test("bench counts errors by code", async () => {
  using peer = await startGrpcPeer(METHOD, { answer: () => ({ code: 14, details: "down\n\u001b[31m" }) });
  const { code, stdout } = await ran(`bench --addr 127.0.0.1:${peer.port} ${SHORT}`);
  assertEquals(code, 1);
  assertMatch(stdout, /^error +[\d,]+ x UNAVAILABLE: down/m);
  assertEquals(stdout.includes("\u001b"), false);
  assertMatch(stdout, /^latency +none\ndecisions +none$/m);
});

for (const more of ["", "--rate 500"]) {
  Deno.test(`bench of a service that stops in the middle ${more}`, async () => {
    await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
    const running = ran(`bench --addr ${weir.grpcAddress} ${LONG} ${more}`);
    await hits(weir);
    await weir.stop();
    const { code, stdout } = await running;
    const { errors, decisions } = JSON.parse(stdout);
    assertEquals([code, decisions.OK > 0], [1, true]);
    // At a constant rate, so is each call that is due before the run ends.
    const ended = errors["the server closed the connection with NO_ERROR"];
    assert(more === "" ? ended === 2 : ended >= 2, stdout);
  });
}

Deno.test("bench of a service that is killed in the middle prints the results so far", async () => {
  await using weir = await startWeir({ rules: { "bench.yaml": RULES } });
  const running = ran(`bench --addr ${weir.grpcAddress} ${LONG}`);
  await until("calls", async () => {
    const response = await fetch(`http://${weir.debugAddress}/stats`);
    return new RegExp(`^${HITS}: [1-9]`, "m").test(await response.text());
  });
  await weir.kill();
  const { code, stdout } = await running;
  const { calls, errors, decisions } = JSON.parse(stdout);
  const failed = Object.values<number>(errors).reduce((sum, one) => sum + one, 0);
  assertEquals([code, decisions.OK > 0, failed > 0, decisions.OK + failed >= calls], [1, true, true, true]);
});

Deno.test("bench that is interrupted prints the results so far", async () => {
  await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
  for (const more of ["", "--rate 500"]) {
    const stop = new AbortController();
    const running = ran(`bench --addr ${weir.grpcAddress} ${LONG} ${more}`, { stop: stop.signal });
    await hits(weir);
    stop.abort();
    const { code, stdout } = await running;
    const { isInterrupted, errors, calls } = JSON.parse(stdout);
    assertEquals([code, isInterrupted, errors, calls > 0], [0, true, {}, true]);
  }
  const stopped = await ran(`bench --addr ${weir.grpcAddress} ${LONG}`, { stop: AbortSignal.abort() });
  assertEquals([stopped.code, stopped.stderr.split("\n").at(-2)], [
    1,
    `Cannot call "${weir.grpcAddress}": interrupted`,
  ]);
});

Deno.test("weir bench ends with SIGINT, and needs no more permissions than the service", async () => {
  await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
  const line = weirCommand(words(`bench --addr ${weir.grpcAddress} ${LONG}`));
  await using child = new ChildProcess(line.command, { args: line.args, env: runtimeEnvironment(line) });
  await hits(weir);
  child.signal("SIGINT");
  const { code } = await child.exited;
  const { isInterrupted, decisions } = JSON.parse(child.stdoutLines.join("\n"));
  assertEquals([code, isInterrupted, decisions.OK], [0, true, (await weir.stats())[HITS]]);
});

Deno.test("bench reaches a service by a unix socket", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const address = `unix:${folder}/rls.sock`;
  const statuses = [{ code: 1, limitRemaining: 0 }];
  const answer = () => encodeRateLimitResponse({ overallCode: 1, statuses, responseHeadersToAdd: [] });
  {
    using _peer = await startGrpcPeer(METHOD, { listen: address, answer });
    const { code, stdout } = await ran(`bench --addr ${address} ${SHORT} --output json`);
    assertEquals([code, JSON.parse(stdout).errors], [0, {}]);
  }
  await Deno.remove(folder, { recursive: true });
});

/** Runs a command, and interrupts it once the service has answered so many more calls. */
async function endedAfter(calls: number, weir: ServeFixture, line: string): Promise<Ran> {
  const answered = async () => (await weir.stats())["ratelimit_server.ShouldRateLimit.total_requests"] ?? 0;
  const goal = await answered() + calls;
  const stop = new AbortController();
  const ended = ran(line, { stop: stop.signal });
  await until(`${calls} calls`, async () => await answered() >= goal);
  stop.abort();
  return await ended;
}

/** Waits until a service has counted calls. */
async function hits(weir: ServeFixture): Promise<void> {
  const before = (await weir.stats())[HITS] ?? 0;
  await until("calls", async () => ((await weir.stats())[HITS] ?? 0) > before);
}
