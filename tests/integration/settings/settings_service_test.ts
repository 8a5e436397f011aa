import { assertEquals, assertMatch, assertNotEquals, assertRejects } from "#assert";
import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { familyPattern, settingEntries } from "../../../src/settings/table.ts";
import { HEALTH_CHECK_REQUEST } from "../../../src/wire/health.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { Dialed } from "../../harness/http_fixture.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import {
  compare,
  type Comparison,
  type Env,
  SHOP,
  shopRequest,
  startShop,
  withFolder,
} from "./settings_bed.ts";

/** The paths of the debug port that no token protects. */
const OPEN_PATHS = ["/", "/healthcheck", "/livez", "/openapi.json", "/ui"];

Deno.test("DEBUG_TOKEN: each listed path requires it, except those that show nothing", async () => {
  await using service = await startShop({ DEBUG_TOKEN: "correct-horse", ADMIN_TOKEN: "battery-staple" });
  const listed = (await service.page("/")).matchAll(/^(\/[^:*]*):/gm).map(([, path = ""]) => path);
  const open: string[] = [];
  for (const path of ["/", ...listed]) {
    if (await statusAt(`${service.debugAddress}${path}`) !== 401) open.push(path);
  }
  assertEquals(open, OPEN_PATHS);
});

// The default of the hosts, every interface, is no place for a test; this one is of the machine alone.
const OTHER_HOST = "127.0.0.2";
const WATCH = "/grpc.health.v1.Health/Watch";

/** Tests that compare a service without a setting to one with it. */
const CASES: Readonly<Record<string, readonly [changed: Env, comparison: Comparison<unknown>]>> = {
  "LOG_LEVEL: lines that are otherwise left out": [{ LOG_LEVEL: "info" }, {
    look: ({ log }) => log.some((line) => line.includes('level=info msg="Rules loaded"')),
    unset: false,
    set: true,
  }],
  "LOG_FORMAT: JSON objects in the log": [{ LOG_FORMAT: "json" }, {
    look: ({ log: [line = ""] }) =>
      line.startsWith("{") ? Object.keys(JSON.parse(line)).join() : line.split("=")[0],
    unset: "time",
    set: "@timestamp,level,@message",
  }],
  "HTTP_MAX_CONNECTIONS: a connection too many": [{ HTTP_MAX_CONNECTIONS: "1" }, {
    async look({ httpAddress }) {
      using first = await dial(httpAddress);
      // In the middle of a request: the next one would take the place of an idle one.
      await first.write("GET /livez HT");
      using second = await dial(httpAddress);
      await second.write("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").catch(() => {});
      return (await second.read().catch(() => "")).endsWith("OK");
    },
    unset: true,
    set: false,
  }],
  "GRPC_MAX_CONNECTIONS: a connection refused beyond them": [{ GRPC_MAX_CONNECTIONS: "1" }, {
    async look({ grpcAddress }) {
      using client = new GrpcClient(grpcAddress);
      await decide(client, "shop", "open=1");
      const [hostname = "", port] = grpcAddress.split(":");
      using second = await Deno.connect({ hostname, port: Number(port) });
      // The server speaks first where it serves.
      return await second.read(new Uint8Array(1)).catch(() => null);
    },
    unset: 1,
    set: null,
  }],
  "HTTP_JSON: decisions and what else the HTTP port serves": [{ HTTP_JSON: "false" }, {
    async look({ httpAddress }) {
      const body = JSON.stringify(shopRequest("open=json"));
      const decision = await statusAt(`${httpAddress}/json`, { method: "POST", body });
      return [decision, await statusAt(`${httpAddress}/healthcheck`)];
    },
    unset: [200, 200],
    set: [404, 200],
  }],
  "DEBUG_ALLOWED_HOSTS: the names by which the debug port answers": [
    { DEBUG_ALLOWED_HOSTS: "weir.example, other.example" },
    {
      async look({ debugAddress }) {
        const statuses: number[] = [];
        for (const host of ["weir.example", "OTHER.example.:6070", "evil.example"]) {
          using raw = await dial(debugAddress);
          await raw.write(`GET /stats HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
          statuses.push(Number((await raw.read()).split(" ")[1]));
        }
        return statuses;
      },
      unset: [403, 403, 403],
      set: [200, 200, 403],
    },
  ],
  "DEBUG_TOKEN: pages for who has the token, paths and health for all": [{ DEBUG_TOKEN: "correct-horse" }, {
    async look({ debugAddress, log }) {
      const seen = [];
      for (const authorization of ["", "Bearer wrong", "Bearer correct-horse"]) {
        for (const path of ["/", "/livez", "/healthcheck", "/rlconfig"]) {
          seen.push(await statusAt(`${debugAddress}${path}`, { headers: { authorization } }));
        }
      }
      return [seen.join(" "), log.some((line) => line.includes("correct-horse"))];
    },
    unset: ["200 200 200 200 200 200 200 200 200 200 200 200", false],
    set: ["200 200 200 401 200 200 200 401 200 200 200 200", false],
  }],
  "RUNTIME_IGNOREDOTFILES: a rule file with a dot before its name left out": [
    { RUNTIME_IGNOREDOTFILES: "true" },
    {
      rules: { ".hidden.yaml": ruleOf("hidden"), "plain.yaml": ruleOf("plain") },
      look: domains,
      unset: ["hidden", "plain"],
      set: ["plain"],
    },
  ],
  "MERGE_DOMAIN_CONFIG: two files with rules of one domain accepted": [{ MERGE_DOMAIN_CONFIG: "true" }, {
    env: { FORCE_START_WITHOUT_INITIAL_CONFIG: "true" },
    rules: { "a.yaml": ruleOf("shop", "first"), "b.yaml": ruleOf("shop", "second") },
    look: (service) =>
      until("the first load", async () => {
        const stats = await service.stats();
        if (stats["ratelimit.service.config_load_success"] === 1) return "accepted";
        return stats["ratelimit.service.config_load_error"] === 1 && "rejected";
      }),
    unset: "rejected",
    set: "accepted",
  }],
  "STATS_MAX_KEYS: statistics beyond the bound gathered in one": [{ STATS_MAX_KEYS: "2" }, {
    async look(service) {
      await service.ask(shopRequest("each=a", "each=b", "each=c"));
      const stats = await service.stats();
      return ["each_c", "other"].map((rule) => stats[`ratelimit.service.rate_limit.shop.${rule}.total_hits`]);
    },
    unset: [1, undefined],
    set: [undefined, 1],
  }],
  "MEMORY_MAX_KEYS: counters that are evicted": [{ MEMORY_MAX_KEYS: "2" }, {
    async look(service) {
      await service.ask(shopRequest("open=a", "open=b", "open=c"));
      const stats = await service.stats();
      return [stats["ratelimit.memory.keys"], stats["ratelimit.memory.evicted_keys"]];
    },
    unset: [3, 0],
    set: [2, 1],
  }],
  "USE_CALENDAR_MONTH_RATE_LIMIT: the end of a month, of a rule and of a limit in a request": [
    { USE_CALENDAR_MONTH_RATE_LIMIT: "true" },
    {
      rules: {
        "shop.yaml":
          "domain: shop\ndescriptors:\n- key: bill\n  rate_limit: { unit: month, requests_per_unit: 5 }\n",
      },
      async look(service) {
        const entries = [{ key: "bill", value: "a" }];
        const limit = { requestsPerUnit: 5, unit: "MONTH" };
        const { body } = await service.ask({
          domain: "shop",
          descriptors: [{ entries }, { entries, limit }],
        });
        return [...JSON.stringify(body).matchAll(/"durationUntilReset":"([0-9]+)s"/g)].map(([, rest]) =>
          rest
        );
      },
      unset: ["475200", "475200"],
      set: ["2635200", "2635200"],
    },
  ],
  "QUOTA_MODE, LIMIT_STANDARD_HEADERS_ENABLED: the policy of the decisions": [
    { QUOTA_MODE: "true", LIMIT_STANDARD_HEADERS_ENABLED: "true" },
    {
      async look(service) {
        const { status, body } = await service.ask(shopRequest("blocked=quota", "open=quota"));
        return [status, JSON.stringify(body).includes('"key":"RateLimit-Policy"')];
      },
      unset: [429, false],
      set: [200, true],
    },
  ],
};

for (const [name, [changed, comparison]] of Object.entries(CASES)) {
  Deno.test(`setting ${name}`, () => compare(changed, comparison));
}

Deno.test("settings of the rules' folders: the root, the folder below it, and that of the rules", () =>
  withFolder({
    "config/rules.yaml": ruleOf("usual"),
    "below/config/rules.yaml": ruleOf("below"),
    "named/rules.yaml": ruleOf("named"),
    "below/named/rules.yaml": ruleOf("chosen"),
  }, async (folder) => {
    const seen = [];
    for (const more of [{}, { RUNTIME_SUBDIRECTORY: "below" }, { RUNTIME_APPDIRECTORY: "named" }]) {
      await using service = await ServeFixture.start({ env: { RUNTIME_ROOT: folder, ...more } });
      seen.push(...await domains(service));
    }
    const env = { RUNTIME_ROOT: folder, RUNTIME_SUBDIRECTORY: "below", RUNTIME_APPDIRECTORY: "named" };
    await using service = await ServeFixture.start({ env });
    assertEquals([...seen, ...await domains(service)], ["usual", "below", "named", "chosen"]);
  }));

Deno.test("settings of the ports: each listens on its interface alone, at its number", async () => {
  // Ports that no other test gets on the other interface.
  const [http = 0, debug = 0, ofGrpc = 0] = [freePort(), freePort(), freePort()];
  await using service = await startShop({
    HOST: OTHER_HOST,
    DEBUG_HOST: OTHER_HOST,
    GRPC_HOST: OTHER_HOST,
    PORT: `${http}`,
    DEBUG_PORT: `${debug}`,
    GRPC_PORT: `${ofGrpc}`,
  });
  const at = (port: number) => `${OTHER_HOST}:${port}`;
  assertEquals(service.running.addresses, { http: at(http), debug: at(debug), grpc: at(ofGrpc) });
  await decides(at(ofGrpc));
  assertEquals([await statusAt(`${at(http)}/json`), await statusAt(`${at(debug)}/rlconfig`)], [405, 200]);
  for (const port of [http, debug, ofGrpc]) {
    // The default would answer here too.
    const refused = await assertRejects(() => Deno.connect({ hostname: "127.0.0.1", port }));
    assertEquals(refused.name, "ConnectionRefused");
  }
});

Deno.test("LISTEN_SHARED: a port in use is shared with a warning, or refused", async () => {
  await using first = await startShop();
  const { grpc, http, debug } = first.running.addresses;
  for (const [name, address] of Object.entries({ GRPC_PORT: grpc, PORT: http, DEBUG_PORT: debug })) {
    const port = address.split(":")[1] ?? "";
    await using second = await startShop({ [name]: port });
    const warnings = second.log.filter((line) => line.includes("Another process listens on this port"));
    assertEquals(warnings.map((line) => line.includes(address)), [true]);
    const error = await assertRejects(() => startShop({ [name]: port, LISTEN_SHARED: "false" }));
    const told =
      `^Cannot listen on "${address}" \\(\\w+\\): .*; change ${name}; .*LISTEN_SHARED=true in both$`;
    assertMatch(error.message, new RegExp(told));
  }
  await using _alone = await startShop({ LISTEN_SHARED: "false" });
});

Deno.test("GRPC_UDS, GRPC_UDS_MODE: gRPC on a unix socket, whose file has these permissions", () =>
  withFolder({}, async (folder) => {
    const GRPC_UDS = join(folder, "weir.sock");
    const modes: number[] = [];
    for (const env of [{ GRPC_UDS }, { GRPC_UDS, GRPC_UDS_MODE: "0606" }]) {
      await using service = await startShop(env);
      assertEquals(service.grpcAddress, `unix:${GRPC_UDS}`);
      await decides(service.grpcAddress);
      modes.push(((await Deno.stat(GRPC_UDS)).mode ?? 0) & 0o777);
    }
    assertNotEquals(modes[0], 0o606);
    assertEquals(modes[1], 0o606);
  }));

Deno.test("GRPC_MAX_CONNECTION_AGE, …_GRACE: a connection is asked to go, and its streams are cut in time", async () => {
  const clock = FakeClock.ofMachine();
  const start = (env: Env) => ServeFixture.start({ env, rules: SHOP, clock });
  const GRPC_MAX_CONNECTION_AGE = "2m";
  await using lasting = await start({});
  await using patient = await start({ GRPC_MAX_CONNECTION_AGE });
  await using strict = await start({ GRPC_MAX_CONNECTION_AGE, GRPC_MAX_CONNECTION_AGE_GRACE: "10s" });
  using idle = await Peer.connect(lasting.grpcAddress);
  using kept = await Peer.connect(patient.grpcAddress);
  using cut = await Peer.connect(strict.grpcAddress);
  const [keptStream, cutStream] = [kept.watch(), cut.watch()];
  await until("the streams", () => keptStream.began && cutStream.began);
  await until("both connections to be asked to go, and one stream to be cut", () => {
    clock.advance(1_000);
    return !kept.connected && !cut.connected && cutStream.ended;
  });
  assertEquals([keptStream.ended, idle.connected], [false, true]);
});

/** Texts that hardly anything takes. */
const BAD_TEXTS = ["no such thing?", "["];

Deno.test("settings: all bad ones are reported in one start, a line each, then those between settings", async () => {
  const bad = settingEntries().flatMap(([name, setting]) => {
    const text = BAD_TEXTS.find((one) => "expected" in setting.parse(one));
    const variable = familyPattern(name) === undefined ? name : name.replace(/<[A-Z]+>/, "SAMPLE");
    return text === undefined ? [] : [[variable, text] as const];
  });
  await using weir = await startWeir({ env: Object.fromEntries(bad), waitFor: [] });
  const { code } = await weir.exited;
  const names = weir.stderrLines.map((line) => /^Invalid (\w+) .+expected .+$/.exec(line)?.[1]);
  assertEquals({ code, names }, { code: 2, names: bad.map(([name]) => name) });
});

function ruleOf(domain: string, key = "key"): string {
  return `domain: ${domain}
descriptors:
  - key: ${key}
    rate_limit: { unit: day, requests_per_unit: 1 }
`;
}

/** The domains in force, as the debug port shows them. */
async function domains(service: ServeFixture): Promise<string[]> {
  const lines = (await service.page("/rlconfig")).trim().split("\n");
  return lines.map((line) => line.split(".")[0] ?? "");
}

async function statusAt(address: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(`http://${address}`, init);
  await response.body?.cancel();
  return response.status;
}

async function dial(address: string): Promise<Dialed> {
  return new Dialed(
    await Deno.connect({ hostname: "127.0.0.1", port: Number(address.split(":").at(-1)) }),
  );
}

async function decides(address: string): Promise<void> {
  using client = new GrpcClient(address);
  const answer = await decide(client, "shop", "open=a");
  assertEquals("overallCode" in answer && answer.overallCode, 1);
}

/** A client of one connection whose state can be seen. */
class Peer implements Disposable {
  readonly #client: grpc.Client;

  private constructor(address: string) {
    this.#client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      "grpc.enable_http_proxy": 0,
    });
  }

  /** Settles once the connection is open. */
  static async connect(address: string): Promise<Peer> {
    const peer = new Peer(address);
    await new Promise<void>((resolve, reject) => {
      const deadline = Date.now() + 60_000;
      peer.#client.waitForReady(deadline, (error) => error === undefined ? resolve() : reject(error));
    });
    return peer;
  }

  /** False once the server has told the connection to go: an idle client makes no other. */
  get connected(): boolean {
    return this.#client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY;
  }

  /** A stream that ends when somebody ends it. */
  watch(): { readonly began: boolean; readonly ended: boolean } {
    const state = { began: false, ended: false };
    const request = Buffer.from(HEALTH_CHECK_REQUEST.encode({ service: "" }));
    const bytes = (message: Buffer) => message;
    const call = this.#client.makeServerStreamRequest(WATCH, bytes, bytes, request);
    call.on("data", () => void (state.began = true));
    call.on("error", () => {});
    call.on("status", () => void (state.ended = true));
    return state;
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
