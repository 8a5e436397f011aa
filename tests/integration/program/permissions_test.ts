import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { SERVE_FLAGS } from "../../../scripts/serve_flags.ts";
import { TlsClient } from "../grpc/tls_bed.ts";
import { HttpsClient } from "../http/https_fixture.ts";
import { TcpReceiver, UdpReceiver } from "../../harness/push_receivers.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { runtimeEnvironment, weirCommand, weirExecutable } from "../../harness/weir_command.ts";
import { startWeir, type WeirOptions, type WeirProcess } from "../../harness/weir_process.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { shopConfig, XdsServer } from "../../harness/xds_server.ts";
import { SHOP, shopRequest } from "../settings/settings_bed.ts";

const RATELIMIT = "ratelimit.service.rate_limit.shop.open.total_hits";
const KEY = new Uint8Array(32).toBase64();

Deno.test("permissions: files, webhooks, workflows, statistics, tracing, debug pages and commands are refused nothing", async () => {
  await using audit = await PermissionAudit.open();
  await using receiver = await WebhookReceiver.start();
  await using collector = await OtlpReceiver.start({ protocol: "http" });
  await using statistics = await TcpReceiver.start();
  await using folder = await WebhookFolder.make({ "order.yaml": workflowOf(receiver.url) });
  const metrics = `127.0.0.1:${freePort()}`;
  const env = { ...folder.env, DISABLE_STATS: "false", STATS_FLUSH_INTERVAL: "100ms" };
  const tracing = { TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const pushing = { PUSH_STATS_HOST: "127.0.0.1", PUSH_STATS_PORT: `${statistics.port}` };
  await using weir = await audit.start({ env: { ...env, ...tracing, ...pushing }, rules: SHOP });
  assertEquals([await ask(weir, "open=a"), await ask(weir, "blocked=a")], [200, 429]);
  await reloads(weir);
  await delivers(weir, receiver);
  await carriesOut(weir, receiver);
  await until("a statistic", () => statistics.lines.some((line) => line.startsWith(RATELIMIT)));
  await showsEverything(weir);
  await runsCommands(audit, weir, folder);
  await until("spans", () => collector.spans.length > 3);
  assertEquals(await weir.stop(), 0);
  // Where statistics are fetched, they are not pushed.
  const pulling = { USE_PULL_METRICS: "true", PULL_METRICS_ADDR: metrics };
  await using pulled = await audit.start({ env: { ...env, ...pulling }, rules: SHOP });
  assertMatch(await (await fetch(`http://${metrics}/metrics`)).text(), /^ratelimit_service_/m);
  assertEquals(await pulled.stop(), 0);
  assertEquals(audit.refusals(), []);
});

Deno.test({
  ...needs(
    ["openssl", "redis-server"],
    "permissions: certificates that are swapped, the key-value cache, tagged statistics and spans by gRPC are refused nothing",
  ),
  async fn() {
    await using audit = await PermissionAudit.open();
    await using certificates = await makeCertificates();
    const { server, client, authority, otherAuthority } = certificates;
    await using redis = await startRedis({ tls: certificates.redisTls() });
    await using collector = await OtlpReceiver.start({ protocol: "grpc" });
    await using statistics = await UdpReceiver.start();
    const env = {
      HTTP_SERVER_USE_TLS: "true",
      GRPC_SERVER_USE_TLS: "true",
      HTTP_SERVER_TLS_CERT: server.certFile,
      HTTP_SERVER_TLS_KEY: server.keyFile,
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
      BACKEND_TYPE: "kv",
      KV_URL: `rediss://localhost:${redis.tlsPort}`,
      KV_TLS_CACERT: authority.certFile,
      KV_TLS_CLIENT_CERT: client.certFile,
      KV_TLS_CLIENT_KEY: client.keyFile,
      DISABLE_STATS: "false",
      USE_TAGGED_PUSH_STATS: "true",
      PUSH_STATS_HOST: "127.0.0.1",
      PUSH_STATS_PORT: `${statistics.port}`,
      STATS_FLUSH_INTERVAL: "100ms",
      TRACING_ENABLED: "true",
      TRACING_EXPORTER_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    };
    await using weir = await audit.start({ env, rules: SHOP });
    const body = JSON.stringify(shopRequest("open=a"));
    const asked = async (client: HttpsClient) => {
      const response = await client.fetch("/json", { method: "POST", body });
      await response.body?.cancel();
      return response.status;
    };
    const port = Number(weir.httpAddress.split(":").at(-1));
    using former = new HttpsClient(port, await Deno.readTextFile(authority.certFile));
    using next = new HttpsClient(port, await Deno.readTextFile(otherAuthority.certFile));
    using grpc = new TlsClient(weir.grpcAddress, certificates, undefined);
    // The method of the probe is not there, which is an answer by TLS all the same.
    assertEquals([await asked(former), await grpc.echo("a")], [
      200,
      "12 The server does not implement the method /test.Probe/Echo",
    ]);
    const other = await certificates.issue("other", { names: "DNS:localhost,IP:127.0.0.1", byOther: true });
    await Deno.copyFile(other.keyFile, server.keyFile);
    await Deno.copyFile(other.certFile, server.certFile);
    // While the former listener ends, it may be met once more.
    await until("the new certificate", async () => await asked(next).catch(() => 0) === 200);
    await until("a statistic", () => statistics.packets.some((packet) => packet.includes("total_hits")));
    await until("spans", () => collector.spans.length > 1);
    assertEquals(await weir.stop(), 0);
    assertEquals(audit.refusals(), []);
  },
});

Deno.test({
  ...needs(
    ["memcached", "postgres"],
    "permissions: a unix socket, rules from a server, the memcached-style cache and a store in PostgreSQL are refused nothing",
  ),
  async fn() {
    await using audit = await PermissionAudit.open();
    await using memcached = await startMemcached();
    await using postgres = await PostgresServer.start();
    await using rules = await XdsServer.start();
    await using receiver = await WebhookReceiver.start();
    await using folder = await WebhookFolder.make();
    rules.set("1", shopConfig({ open: 1 }));
    const path = join(audit.folder, "weir.sock");
    const env = {
      ...folder.env,
      WEBHOOK_STORE: postgres.url(await postgres.createDatabase()),
      WEBHOOK_ENCRYPTION_KEY: KEY,
      GRPC_UDS: path,
      BACKEND_TYPE: "mc",
      MC_HOST_PORT: memcached.url,
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_URL: rules.url,
    };
    await using weir = await audit.start({ env });
    using client = new GrpcClient(`unix:${path}`);
    // The limits for an answer of this cache are short, and a first connection takes longer.
    await until("the cache to answer", async () => "overallCode" in await decide(client, "shop", "other=a"));
    const codes = [];
    for (let call = 0; call < 2; call++) {
      const answer = await decide(client, "shop", "open=a");
      codes.push("overallCode" in answer ? answer.overallCode : answer);
    }
    assertEquals(codes, [1, 2]);
    await delivers(weir, receiver);
    assertEquals(await weir.stop(), 0);
    assertEquals(audit.refusals(), []);
  },
});

const OTHER_SYSTEM_PARTS =
  "hostname,systemMemoryInfo,loadavg,uid,osRelease,cpus,networkInterfaces,inspector,ca";

/** A permission that is left out, and what the audit has to name for it. */
const LEFT_OUT: Readonly<
  Record<string, { readonly without: (flags: readonly string[]) => string[]; named: string }>
> = {
  "the priority of threads, which no document names": {
    without: (flags) => flags.map((flag) => flag === "--allow-sys" ? `${flag}=${OTHER_SYSTEM_PARTS}` : flag),
    named: "sys setPriority",
  },
  "all that is written": {
    without: (flags) => flags.filter((flag) => flag !== "--allow-write"),
    named: "write",
  },
};

for (const [what, { without, named }] of Object.entries(LEFT_OUT)) {
  Deno.test(`permissions: a flag that lacks ${what} is found`, async () => {
    const flags = SERVE_FLAGS;
    assertEquals(without(flags).join() === flags.join(), false);
    await using audit = await PermissionAudit.open(without(flags));
    await using folder = await WebhookFolder.make();
    await using weir = await audit.start({ env: folder.env, rules: SHOP });
    await until("it to be asked for", () => audit.asked().includes(named));
    await weir.stop();
    assertEquals(audit.refusals()[0], named);
  });
}

function workflowOf(url: string): string {
  return `workflow: order
steps:
  - name: fair-use
    limit: { domain: shop, descriptors: [{ open: "{{ input.n }}" }], onOver: fail }
  - name: ask
    request: { method: POST, url: "${url}", body: { n: "{{ input.n }}" } }
  - name: result
    set: { n: "{{ input.n }}" }
`;
}

/** Queries of debug pages that take no number of seconds. */
const QUERIES: Readonly<Record<string, string>> = {
  "/explain": "?domain=shop&descriptors=open=a",
  "/quotas": "?domain=shop",
};

async function ask(weir: WeirProcess, descriptor: string): Promise<number> {
  const body = JSON.stringify(shopRequest(descriptor));
  const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
  await response.body?.cancel();
  return response.status;
}

async function reloads(weir: WeirProcess): Promise<void> {
  const [[name, text]] = Object.entries(SHOP) as [[string, string]];
  await Deno.writeTextFile(
    join(weir.rulesFolder, name),
    text.replace("requests_per_unit: 0", "requests_per_unit: 9"),
  );
  // A refused call counts too: each has its own counter.
  let calls = 0;
  await until("the rules to be read again", async () => await ask(weir, `blocked=${calls++}`) === 200);
  weir.signal("SIGHUP");
  assertEquals(await ask(weir, `blocked=${calls++}`), 200);
}

async function delivers(weir: WeirProcess, receiver: WebhookReceiver): Promise<void> {
  const { httpAddress } = weir;
  await until("the webhook service", async () => (await api(httpAddress, "/endpoints")).status === 200);
  // A store that is slow to answer refuses for a while.
  await until("the endpoint to be made", async () => {
    const made = { body: { url: receiver.url }, idempotencyKey: "endpoint" };
    return (await api(httpAddress, "/endpoints", made)).status === 201;
  });
  const body = { event: "agent.reply.completed", data: { n: 1 } };
  await until("the event to be accepted", async () => {
    return (await api(httpAddress, "/events", { body, idempotencyKey: "one" })).status === 202;
  });
  await until("the delivery", () => receiver.receptions.length === 1);
}

async function carriesOut({ httpAddress }: WeirProcess, receiver: WebhookReceiver): Promise<void> {
  const made = await api(httpAddress, "/triggers", { body: { name: "orders", workflow: "order" } });
  const call = { token: made.body.key, body: { n: 1 } };
  const { body, status } = await api(httpAddress, "/workflows/triggers/orders", call);
  assertEquals(status, 202);
  const path = `/executions/${body.executionId}`;
  await until("the execution", async () => (await api(httpAddress, path)).body.status === "succeeded");
  await eventually(true, () => receiver.receptions.length >= 2);
}

/** Asks for every page that the debug port lists. */
async function showsEverything(weir: WeirProcess): Promise<void> {
  const list = await (await fetch(`http://${weir.debugAddress}/`)).text();
  const paths = list.split("\n").flatMap((line) => /^(\/(?!api\/)[^\s*]*): /.exec(line)?.[1] ?? []);
  const bad = [];
  for (const path of paths) {
    const query = QUERIES[path] ?? "?seconds=1";
    const response = await fetch(`http://${weir.debugAddress}${path}${query}`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    await response.body?.cancel();
    if (response.status !== 200) bad.push([path, response.status]);
  }
  assertEquals([paths.length > 8, bad], [true, []]);
}

async function runsCommands(audit: PermissionAudit, weir: WeirProcess, folder: WebhookFolder): Promise<void> {
  const store = { WEBHOOK_STORE: folder.store };
  const requests = join(audit.folder, "requests.jsonl");
  await Deno.writeTextFile(requests, JSON.stringify({ time: 1_700_000_000, ...shopRequest("open=a") }));
  const runs = [
    ["check", weir.rulesFolder],
    ["explain", "--config", weir.rulesFolder, "--domain", "shop", "--descriptors", "open=a"],
    ["client", "-dial_string", weir.grpcAddress, "-domain", "shop", "-descriptors", "open=z"],
    ["simulate", "--config", weir.rulesFolder, "--against", weir.rulesFolder, "--requests", requests],
    ["health", "--url", `http://${weir.httpAddress}`],
    ["health", "--grpc", weir.grpcAddress],
    ["endpoints", "list", "--url", `http://${weir.httpAddress}`],
    ["store", "check"],
    ["store", "backup", join(audit.folder, "copy.db")],
  ];
  const ended = [];
  for (const args of runs) {
    const { code, lines } = await audit.run(args, { ...store, ADMIN_TOKEN });
    if (code !== 0) ended.push([args[0], code, lines.slice(0, 3)]);
  }
  assertEquals(ended, []);
}

/**
 * Programs of Weir whose every question for a permission is written down, those too that were answered with no and of
 * which the program says nothing. Removed at the end of an `await using`.
 */
class PermissionAudit implements AsyncDisposable {
  /** For what the programs use. */
  readonly folder: string;
  /** In place of the flags of the serve task. */
  readonly #flags: readonly string[] | undefined;
  readonly #lines: (() => readonly string[])[] = [];
  /** Every program has its own, because it begins by emptying it. */
  readonly #paths: string[] = [];

  private constructor(folder: string, flags: readonly string[] | undefined) {
    this.folder = folder;
    this.#flags = flags;
  }

  /** For programs with the flags of the serve task, or with these in their place. */
  static async open(flags?: readonly string[]): Promise<PermissionAudit> {
    const folder = await Deno.makeTempDir({ prefix: "weir_audit_" });
    return new PermissionAudit(folder, flags);
  }

  /** Starts Weir. */
  async start(options: WeirOptions): Promise<WeirProcess> {
    const env = { ...options.env, ...this.#env() };
    const weir = await startWeir({
      ...options,
      env,
      ...(this.#flags === undefined ? {} : { flags: this.#flags }),
    });
    this.#lines.push(() => [...weir.stderrLines, ...weir.stdoutLines]);
    return weir;
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], env: Readonly<Record<string, string>>) {
    const line = weirCommand(args, this.#flags);
    await using child = new ChildProcess(line.command, {
      args: line.args,
      cwd: this.folder,
      env: { ...runtimeEnvironment(), ...env, ...this.#env() },
    });
    const { code } = await child.exited;
    const lines = [...child.stdoutLines, ...child.stderrLines];
    this.#lines.push(() => lines);
    return { code, lines };
  }

  /** The requested permissions, such as `sys hostname`; of files and the network only the kind, such as `read`. */
  asked(): string[] {
    return [...new Set(this.#questions().map(({ shown }) => shown))].sort();
  }

  /** The requested permissions that are not granted, and the lines that report a refusal. */
  refusals(): string[] {
    const refused = this.#questions().filter(({ isGranted }) => !isGranted).map(({ shown }) => shown);
    const told = this.#lines.flatMap((lines) => lines()).filter((line) =>
      /NotCapable|Requires .* access/.test(line)
    );
    return [...new Set(refused), ...told];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  #env(): Record<string, string> {
    const path = join(this.folder, `audit_${this.#paths.length}.jsonl`);
    this.#paths.push(path);
    return { DENO_AUDIT_PERMISSIONS: path };
  }

  #questions(): { readonly shown: string; readonly isGranted: boolean }[] {
    const flags = this.#flags ?? SERVE_FLAGS;
    const lines = this.#paths.flatMap((path) => auditText(path).split("\n"));
    // The last line of a program that runs may be half written.
    return lines.filter((line) => line.endsWith("}")).map((line) => {
      const { permission, value } = JSON.parse(line);
      const granted = flags.find((flag) => flag.split("=")[0] === `--allow-${permission}`);
      const list = granted?.split("=")[1]?.split(",");
      const isGranted = granted !== undefined && (list === undefined || list.includes(String(value)));
      return { shown: permission === "sys" ? `sys ${value}` : String(permission), isGranted };
    });
  }
}

function auditText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    // An executable need not write one; what it says of refusals is looked at all the same.
    if (error instanceof Deno.errors.NotFound && weirExecutable() !== undefined) return "";
    throw error;
  }
}
