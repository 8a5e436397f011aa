import { assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { checkRuntime } from "../../../src/cli/runtime_check.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { HEALTH_CHECK_REQUEST } from "../../../src/wire/health.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import {
  compare,
  type Env,
  NOON,
  type SettingCases,
  SHOP,
  shopRequest,
  withFolder,
} from "./settings_case.ts";

// The default of the hosts, every interface, is no place for a test; this one is of the machine alone.
const OTHER_HOST = "127.0.0.2";
const WATCH = "/grpc.health.v1.Health/Watch";

/** Tests of the settings of the process and its listeners. */
export const SERVER_CASES: SettingCases = {
  LOG_LEVEL: {
    sees: "lines that are otherwise left out",
    run: () =>
      compare({ LOG_LEVEL: "info" }, {
        look: ({ log }) => log.some((line) => line.includes('level=info msg="Rules loaded"')),
        unset: false,
        set: true,
      }),
  },
  LOG_FORMAT: {
    sees: "JSON objects in the log",
    run: () =>
      compare({ LOG_FORMAT: "json" }, {
        look: ({ log: [line = ""] }) =>
          line.startsWith("{") ? Object.keys(JSON.parse(line)).join() : line.split("=")[0] ?? "",
        unset: "time",
        set: "@timestamp,level,@message",
      }),
  },
  SHUTDOWN_DELAY: { sees: "calls answered between the signal and the stop", run: staysForTheDelay },
  ALLOW_UNSAFE_DENO: {
    sees: "a release of the runtime accepted that is otherwise refused",
    run() {
      const refusals = [{}, { ALLOW_UNSAFE_DENO: "true" }].map((env) => {
        const { settings } = readSettings({ BACKEND_TYPE: "memory", ...env });
        return checkRuntime("2.9.5", settings.ALLOW_UNSAFE_DENO)?.refuse;
      });
      assertEquals(refusals, [true, false]);
      return Promise.resolve();
    },
  },
  GRPC_ENGINE: {
    sees: "another engine's words for a method that is not there",
    run: () =>
      compare({ GRPC_ENGINE: "grpc-js" }, {
        async look({ running }) {
          using client = new GrpcClient(running.addresses.grpc);
          const { code, details } = await client.unary("/no.Service/Nothing", new Uint8Array());
          return [code, details];
        },
        unset: [12, "The server does not implement the method /no.Service/Nothing"],
        set: [12, "The server does not implement the method /no.Service/Nothing"],
      }),
  },
  HOST: { sees: "HTTP on that interface alone", run: () => listensOn("http", "HOST", "PORT") },
  DEBUG_HOST: {
    sees: "debug pages on that interface alone",
    run: () => listensOn("debug", "DEBUG_HOST", "DEBUG_PORT"),
  },
  GRPC_HOST: {
    sees: "gRPC on that interface alone",
    run: () => listensOn("grpc", "GRPC_HOST", "GRPC_PORT"),
  },
  PORT: { sees: "HTTP on that port", run: () => listensAt("http", "PORT") },
  DEBUG_PORT: { sees: "debug pages on that port", run: () => listensAt("debug", "DEBUG_PORT") },
  GRPC_PORT: { sees: "gRPC on that port", run: () => listensAt("grpc", "GRPC_PORT") },
  GRPC_MAX_CONNECTIONS: {
    sees: "a connection refused beyond them",
    run: () =>
      compare({ GRPC_MAX_CONNECTIONS: "1" }, {
        async look({ running: { addresses } }) {
          using client = new GrpcClient(addresses.grpc);
          await decide(client, "shop", "open=1");
          const [hostname = "", port] = addresses.grpc.split(":");
          using second = await Deno.connect({ hostname, port: Number(port) });
          // The server speaks first where it serves.
          return await second.read(new Uint8Array(1)).catch(() => null);
        },
        unset: 1,
        set: null,
      }),
  },
  LISTEN_SHARED: {
    sees: "a port in use refused, which is otherwise shared with a warning",
    run: refusesToShare,
  },
  WORKERS: {
    sees: "several listeners on the gRPC port, one for each worker",
    run: () =>
      compare({ WORKERS: "3" }, {
        async look({ grpcAddress }) {
          const port = Number(grpcAddress.split(":")[1]).toString(16).toUpperCase().padStart(4, "0");
          const sockets = (await Deno.readTextFile("/proc/net/tcp")).split("\n");
          // 0A is the state of a listener.
          return sockets.filter((line) => line.includes(`0100007F:${port} 00000000:0000 0A`)).length;
        },
        unset: 1,
        set: 3,
      }),
  },
  GRPC_UDS: { sees: "gRPC on a unix socket in place of TCP", run: servesASocket },
  GRPC_UDS_MODE: {
    sees: "the permissions of the socket file",
    run: () =>
      withFolder({}, async (folder) => {
        const GRPC_UDS = join(folder, "weir.sock");
        const modes: number[] = [];
        for (const env of [{ GRPC_UDS }, { GRPC_UDS, GRPC_UDS_MODE: "0606" }]) {
          await using _service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
          modes.push((await Deno.stat(GRPC_UDS)).mode ?? 0);
        }
        const [unset = 0, set = 0] = modes.map((mode) => mode & 0o777);
        assertNotEquals(unset, 0o606);
        assertEquals(set, 0o606);
      }),
  },
  GRPC_MAX_CONNECTION_AGE: { sees: "an idle connection told to go away", run: sendsAway },
  GRPC_MAX_CONNECTION_AGE_GRACE: {
    sees: "a stream cut on a connection that was told to go",
    run: cutsStreams,
  },
};

type Port = "http" | "grpc" | "debug";

async function refusesToShare(): Promise<void> {
  await using first = await ServeFixture.start({ rules: SHOP, clock: NOON });
  const { grpc, http, debug } = first.running.addresses;
  for (const [name, address] of Object.entries({ GRPC_PORT: grpc, PORT: http, DEBUG_PORT: debug })) {
    const port = address.split(":")[1] ?? "";
    await using second = await ServeFixture.start({ env: { [name]: port }, rules: SHOP, clock: NOON });
    const warnings = second.log.filter((line) => line.includes("Another process listens on this port"));
    assertEquals(warnings.map((line) => line.includes(address)), [true]);
    const env = { [name]: port, LISTEN_SHARED: "false" };
    const error = await assertRejects(() => ServeFixture.start({ env, rules: SHOP, clock: NOON }));
    assertMatch(
      error.message,
      new RegExp(
        `^Cannot listen on "${address}" \\(\\w+\\): .*; change ${name}; .*LISTEN_SHARED=true in both$`,
      ),
    );
  }
  await using _alone = await ServeFixture.start({
    env: { LISTEN_SHARED: "false" },
    rules: SHOP,
    clock: NOON,
  });
}

async function listensOn(port: Port, host: string, number: string): Promise<void> {
  // One that nobody else gets on the other interface.
  const env = { [host]: OTHER_HOST, [number]: String(freePort()) };
  await using service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
  const address = service.running.addresses[port];
  assertMatch(address, /^127\.0\.0\.2:/);
  await reach(port, address);
  // The default would answer here too.
  const elsewhere = { hostname: "127.0.0.1", port: Number(address.split(":")[1]) };
  const refused = await assertRejects(() => Deno.connect(elsewhere));
  assertEquals(refused.name, "ConnectionRefused");
}

async function listensAt(port: Port, name: string): Promise<void> {
  const number = freePort();
  await using service = await ServeFixture.start({
    env: { [name]: String(number) },
    rules: SHOP,
    clock: NOON,
  });
  assertEquals(service.running.addresses[port], `127.0.0.1:${number}`);
  await reach(port, `127.0.0.1:${number}`);
}

/** Asks what only this port answers. */
async function reach(port: Port, address: string): Promise<void> {
  if (port === "grpc") return await decides(address);
  const path = port === "http" ? "/json" : "/rlconfig";
  const response = await fetch(`http://${address}${path}`);
  await response.body?.cancel();
  assertEquals(response.status, port === "http" ? 405 : 200);
}

async function decides(address: string): Promise<void> {
  using client = new GrpcClient(address);
  const answer = await decide(client, "shop", "open=a");
  assertEquals("overallCode" in answer && answer.overallCode, 1);
}

async function servesASocket(): Promise<void> {
  await withFolder({}, async (folder) => {
    const path = join(folder, "weir.sock");
    await compare({ GRPC_UDS: path }, {
      async look({ running: { addresses } }) {
        await decides(addresses.grpc);
        return addresses.grpc.split(":")[0];
      },
      unset: "127.0.0.1",
      set: "unix",
    });
  });
}

async function staysForTheDelay(): Promise<void> {
  {
    await using prompt = await ServeFixture.start({ rules: SHOP });
    await prompt.stop();
    await assertRejects(() => prompt.ask(shopRequest("open=a")));
  }
  const clock = new FakeClock();
  const env = { SHUTDOWN_DELAY: "1h" };
  await using service = await ServeFixture.start({ env, rules: SHOP, clock });
  const stopped = service.stop();
  try {
    assertEquals(await service.page("/healthcheck"), "sigterm: the service is stopping\n");
    assertEquals((await service.ask(shopRequest("open=a"))).status, 200);
  } finally {
    clock.advance(3_600_000);
    await stopped;
  }
  await assertRejects(() => service.ask(shopRequest("open=a")));
}

async function sendsAway(): Promise<void> {
  await using lasting = await ServeFixture.start({ rules: SHOP });
  const env = { GRPC_MAX_CONNECTION_AGE: "100ms" };
  await using aging = await ServeFixture.start({ env, rules: SHOP });
  using before = await Peer.connect(lasting.running.addresses.grpc);
  using after = await Peer.connect(aging.running.addresses.grpc);
  await until("the connection to go", () => !after.connected);
  assertEquals(before.connected, true);
}

async function cutsStreams(): Promise<void> {
  const start = (more: Env) => {
    // So long that both streams are there before their connections are told to go.
    const env = { GRPC_MAX_CONNECTION_AGE: "1s", ...more };
    return ServeFixture.start({ env, rules: SHOP });
  };
  await using patient = await start({});
  await using strict = await start({ GRPC_MAX_CONNECTION_AGE_GRACE: "100ms" });
  using kept = await Peer.connect(patient.running.addresses.grpc);
  using cut = await Peer.connect(strict.running.addresses.grpc);
  const keptStream = kept.watch();
  const cutStream = cut.watch();
  await until("both connections to be told to go", () => !kept.connected && !cut.connected);
  await until("one stream to be cut", () => cutStream.ended);
  assertEquals(keptStream.ended, false);
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
  watch(): { readonly ended: boolean } {
    const state = { ended: false };
    const request = Buffer.from(HEALTH_CHECK_REQUEST.encode({ service: "" }));
    const bytes = (message: Buffer) => message;
    const call = this.#client.makeServerStreamRequest(WATCH, bytes, bytes, request);
    call.on("data", () => {});
    call.on("error", () => {});
    call.on("status", () => void (state.ended = true));
    return state;
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
