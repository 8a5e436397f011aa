import { assertEquals, assertMatch } from "#assert";
import { status } from "@grpc/grpc-js";
import { HEALTH_CHECK_RESPONSE } from "../../../src/wire/health.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { startGrpcPeer } from "../../harness/grpc_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";
import { ran } from "../../harness/administration_fixture.ts";

Deno.test("health is that of the service whose settings these are, until it stops", async () => {
  await using weir = await ServeFixture.start({ env: { SHUTDOWN_DELAY: "60s" }, clock: new FakeClock() });
  const url = `http://${weir.httpAddress}/healthcheck`;
  const asked = [
    () => ran("health", { environment: { PORT: portOf(weir), HOST: "" } }),
    () => ran("health", { environment: { PORT: portOf(weir), HOST: "localhost" } }),
    () => ran(`health --url http://${weir.httpAddress}`),
    () => ran(`health --url http://${weir.debugAddress}/healthcheck`),
  ];
  for (const ask of asked) assertEquals(await ask(), { code: 0, stdout: "OK\n", stderr: "" });
  const json = ["health", "--json", "--url"];
  const isHealthy = await ran([...json, url]);
  assertEquals([isHealthy.code, JSON.parse(isHealthy.stdout)], [0, {
    healthy: true,
    state: "ok",
    target: url,
    text: "OK",
  }]);
  const byGrpc = () => ran(["health", "--grpc", weir.grpcAddress]);
  assertEquals(await byGrpc(), { code: 0, stdout: "SERVING\n", stderr: "" });

  weir.beginStop();
  await until("health to turn", async () => {
    const { status, body } = await fetch(url);
    await body?.cancel();
    return status === 503;
  });
  const stopping = `The service at "${url}" is failing: 503: sigterm: the service is stopping\n`;
  assertEquals(await ran(["health", "--url", url]), { code: 1, stdout: "", stderr: stopping });
  const isStopping = await ran([...json, url]);
  assertEquals([isStopping.code, JSON.parse(isStopping.stdout).healthy, isStopping.stderr], [1, false, ""]);
  const notServing = `The service at "${weir.grpcAddress}" is failing: NOT_SERVING\n`;
  assertEquals(await byGrpc(), { code: 1, stdout: "", stderr: notServing });
});

Deno.test("weir health is its own command, which no proxy comes between", async () => {
  await using weir = await ServeFixture.start();
  const proxy = { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" };
  const exit = async (PORT: string) => {
    const line = weirCommand(["health"]);
    const env = { ...runtimeEnvironment(line), ...proxy, PORT };
    await using child = new ChildProcess(line.command, { args: line.args, env });
    const { code } = await child.exited;
    return [code, child.stdoutLines, child.stderrLines.length];
  };
  assertEquals([await exit(portOf(weir)), await exit(String(freePort()))], [[0, ["OK"], 0], [1, [], 1]]);
});

Deno.test({
  ...needs(["openssl"], "health over TLS: any certificate of one's own, elsewhere one that is trusted"),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, otherAuthority, server, elsewhere } = certificates;
    for (const files of [server, elsewhere]) {
      await using weir = await ServeFixture.start({ env: tlsEnv(files) });
      const environment = { PORT: portOf(weir), HTTP_SERVER_USE_TLS: "true" };
      assertEquals(await ran("health", { environment }), { code: 0, stdout: "OK\n", stderr: "" });
      const url = ["health", "--url", `https://localhost:${portOf(weir)}`];
      const codes = [];
      for (const ca of [[], ["--ca", otherAuthority.certFile], ["--ca", authority.certFile]]) {
        codes.push((await ran([...url, ...ca])).code);
      }
      assertEquals(codes, [1, 1, files === server ? 0 : 1]);
      // Who serves TLS is not asked without.
      assertEquals((await ran("health", { environment: { PORT: portOf(weir) } })).code, 1);
    }
  },
});

type PageCase = readonly [
  /** Given a promise that settles when the caller gave up. */
  answer: (over: Promise<void>) => Response | Promise<Response>,
  code: number,
  stdout: string,
  stderr: string,
];
/** Answers of pages, and what is made of them: exit code, standard output, standard error after the address. */
const PAGES: Readonly<Record<string, PageCase>> = {
  "a healthy service with a note": [
    () => new Response("OK\nclock: 2 s behind\n"),
    0,
    "OK; clock: 2 s behind\n",
    "",
  ],
  "a degraded service": [
    () => new Response("OK\nconfig: rules rejected\ncache: away\n"),
    0,
    "OK; config: rules rejected; cache: away\n",
    "",
  ],
  "components that fail": [
    () => new Response("cache: away\nstore: the disk\x1b[2J is full\n", { status: 503 }),
    1,
    "",
    ": 503: cache: away; store: the disk\\u001b[2J is full\n",
  ],
  "a failure without a word": [() => new Response(null, { status: 500 }), 1, "", ": 500\n"],
  "a redirect, which is not followed": [
    () => new Response(null, { status: 302, headers: { location: "/livez" } }),
    1,
    "",
    ": 302\n",
  ],
  "a healthy service of few words": [() => new Response(""), 0, "\n", ""],
  "an answer that is too long": [
    () => new Response("x".repeat(70_000)),
    1,
    "",
    ": its answer is longer than 65536 bytes\n",
  ],
  "an answer that does not end": [
    () => new Response(new ReadableStream({ start: (stream) => stream.enqueue(Uint8Array.of(79, 75)) })),
    1,
    "",
    ": no whole answer within 300 ms\n",
  ],
  "an answer that does not begin in time": [
    (over) => over.then(() => new Response()),
    1,
    "",
    ": no whole answer within 300 ms\n",
  ],
};

for (const [name, [answer, code, stdout, stderr]] of Object.entries(PAGES)) {
  Deno.test(`health of ${name}`, async () => {
    const paths: string[] = [];
    const clock = new FakeClock();
    const over = Promise.withResolvers<void>();
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    await using server = Deno.serve(options, ({ url }) => {
      paths.push(new URL(url).pathname);
      return answer(over.promise);
    });
    const url = `http://127.0.0.1:${server.addr.port}/health/page`;
    const asking = ran(["health", "--url", url, "--timeout", "300ms"], { clock }).finally(over.resolve);
    if (stderr.includes("300 ms")) {
      await until("the question", () => paths.length > 0);
      clock.advance(300);
    }
    const seen = await asking;
    const said = seen.stderr.replace(/^(?:The service at "[^"]+" is failing|Cannot query "[^"]+")/, "");
    assertEquals([seen.code, seen.stdout, said, paths], [code, stdout, stderr, ["/health/page"]]);
  });
}

Deno.test({
  name: "health by gRPC: a status that is none, an error, no answer",
  async fn() {
    const method = "/grpc.health.v1.Health/Check";
    const answers = [
      HEALTH_CHECK_RESPONSE.encode({ status: 3 }),
      HEALTH_CHECK_RESPONSE.encode({ status: 17 }),
      { code: status.UNIMPLEMENTED, details: "no such service" },
      undefined,
    ];
    const seen: unknown[] = [];
    for (const answer of answers) {
      using peer = await startGrpcPeer(method, { answer: () => answer });
      const timeout = answer === undefined ? "100ms" : "60s";
      const args = ["--grpc", `127.0.0.1:${peer.port}`, "--timeout", timeout];
      const { code, stderr } = await ran(["health", ...args]);
      seen.push([code, stderr.replace(/^.+"(?: is failing)?: (\w+(?: \d+)?)[^]*$/, "$1")]);
    }
    assertEquals(seen, [
      [1, "SERVICE_UNKNOWN"],
      [1, "status 17"],
      [1, "UNIMPLEMENTED"],
      [1, "DEADLINE_EXCEEDED"],
    ]);
  },
});

Deno.test({
  name: "health without a listener, by HTTP and by gRPC",
  async fn() {
    const PORT = String(freePort());
    const byHttp = await ran("health", { environment: { PORT } });
    const byGrpc = await ran(`health --grpc 127.0.0.1:${PORT}`);
    assertEquals([byHttp.code, byHttp.stdout, byGrpc.code, byGrpc.stdout], [1, "", 1, ""]);
    assertMatch(
      byHttp.stderr,
      /^Cannot query "http:\/\/127\.0\.0\.1:\d+\/healthcheck": [^\n]*ECONNREFUSED[^\n]*\n$/,
    );
    assertMatch(byGrpc.stderr, /^Cannot call "127\.0\.0\.1:\d+": UNAVAILABLE: connection refused\n$/);
  },
});

for (const [name, wrong] of [["PORT", "http"], ["HTTP_SERVER_USE_TLS", "on"], ["HOST", "a b"]] as const) {
  Deno.test(`weir health reads ${name} as the service does`, async () => {
    const { code, stderr } = await ran("health", { environment: { [name]: wrong } });
    assertEquals([code, stderr.startsWith(`Invalid ${name} "${wrong}": `)], [2, true]);
  });
}

function portOf({ httpAddress }: ServeFixture): string {
  return httpAddress.slice(httpAddress.lastIndexOf(":") + 1);
}

function tlsEnv({ certFile, keyFile }: CertificateFiles): Record<string, string> {
  return { HTTP_SERVER_USE_TLS: "true", HTTP_SERVER_TLS_CERT: certFile, HTTP_SERVER_TLS_KEY: keyFile };
}
