import { assertEquals } from "#assert";
import net from "node:net";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { startEnvoy } from "../../harness/envoy.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { FrameLoad, RestartLoad } from "./restart_load.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { startWeir } from "../../harness/weir_process.ts";

/** Within these times a service waits for what was sent to it, which a machine may let pass that stands still. */
const LAST_STREAM_MS = 300;
const LAST_REQUEST_MS = 30;

async function withSocketFolder(run: (env: Record<string, string>) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  try {
    await run({ GRPC_UDS: join(folder, "grpc.sock") });
    assertEquals([...Deno.readDirSync(folder)].map((entry) => entry.name), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const PLACES = {
  TCP: (run: (env: Record<string, string>) => Promise<void>) => run({}),
  "TCP with two threads": (run: (env: Record<string, string>) => Promise<void>) =>
    run({ WORKERS: "2", BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1", CACHE_ON_FAILURE: "local" }),
  "a unix socket": withSocketFolder,
};

for (const [place, within] of Object.entries(PLACES)) {
  for (const engine of ["native", "grpc-js"]) {
    // One engine as processes, whose end closes all that is open.
    const run = engine === "native" ? startWeir : ServeFixture.start;
    Deno.test(`rolling restart, ${engine} over ${place}: a client that goes when it is asked to loses no call`, () =>
      within(async (env) => {
        using pauses = new PauseWatch();
        await using weir = await RestartWeir.start({ GRPC_ENGINE: engine, ...env }, run);
        const load = new FrameLoad(weir.current.grpcAddress);
        await restartUnderLoad(weir, load);
        // Our own engine names its last stream when all that was sent has come: nothing is ever sent again.
        if (engine === "native" && pauses.longestMs < LAST_STREAM_MS) assertEquals(load.retried, 0);
        // Where processes share a port, the kernel deals connections out before they are accepted, and those
        // that wait in the queue of the closing one are reset. No call was sent on them; only the kernel can
        // hand them on (net.ipv4.tcp_migrate_req). A file that passes on has no such moment.
        if (!place.startsWith("TCP")) assertEquals(load.resets, 0);
      }));
  }
}

/** No call was sent: the kernel resets what waits in the queue of a listener that closes, while a client reads or writes. */
const NOT_ACCEPTED = /^No connection established\. Last error: (?:read|write) E(?:CONNRESET|PIPE)/;

/** Callers by grpc-js, which sends again by itself what a server says it has not begun. */
class LibraryLoad extends RestartLoad {
  constructor(address: string) {
    super();
    this.start(Array.from({ length: 4 }, () => () => this.#keep(address)));
  }

  async #keep(address: string): Promise<void> {
    // A separate channel, or all would share one connection.
    using client = new GrpcClient(address, { "grpc.use_local_subchannel_pool": 1 });
    await Promise.all(Array.from({ length: 3 }, async () => {
      while (this.isGoing) {
        const answer = await decide(client, "shop", "user=bob");
        if ("overallCode" in answer) this.answered++;
        else if (NOT_ACCEPTED.test(answer.details)) this.resets++;
        else this.failures.push(`status ${answer.code}: ${answer.details}`);
        await this.pause();
      }
    }));
  }
}

for (const engine of ["native", "grpc-js"]) {
  Deno.test(`rolling restart, ${engine} over TCP: a client of gRPC with its own retry loses no call`, async () => {
    await using weir = await RestartWeir.start({ GRPC_ENGINE: engine });
    await restartUnderLoad(weir, new LibraryLoad(weir.current.grpcAddress));
  });
}

/** Callers through Envoy. Any answer but 200 is a failure. */
class FetchLoad extends RestartLoad {
  constructor(url: string) {
    super();
    this.start(Array.from({ length: 8 }, () => () => this.#keep(url)));
  }

  async #keep(url: string): Promise<void> {
    while (this.isGoing) {
      try {
        const response = await fetch(url);
        const text = await response.text();
        if (response.status === 200) this.answered++;
        else this.failures.push(`${response.status} ${text}`);
      } catch (error) {
        this.failures.push(String(error));
      }
      await this.pause();
    }
  }
}

Deno.test({
  ...needs(["envoy"], "rolling restart behind Envoy: no request is refused for want of a decision"),
  async fn() {
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    await using upstream = Deno.serve(quiet, () => new Response("upstream"));
    await using weir = await RestartWeir.start({ GRPC_ENGINE: "native" });
    const peers = { weir: weir.current.grpcAddress, upstream: `127.0.0.1:${upstream.addr.port}` };
    await using envoy = await startEnvoy(envoyConfig({ ...peers, domain: "shop" }));
    // Where Envoy gets no decision, this listener of it answers 500.
    await restartUnderLoad(weir, new FetchLoad(`http://${envoy.address("deny")}/cart`));
  },
});

// A server of HTTP/1.1 cannot ask a client to go ahead of time, as GOAWAY does: when the runtime closes,
// it drops what it has not begun to read, answered by no byte. The client sends that again.
Deno.test("rolling restart over HTTP: a client that keeps its connections loses no request", async () => {
  using pauses = new PauseWatch();
  await using weir = await RestartWeir.start({ SHUTDOWN_DELAY: "100ms" });
  const load = new HttpLoad(weir.current.httpAddress);
  await restartUnderLoad(weir, load);
  // Within the delay each connection is asked to go.
  if (pauses.longestMs < LAST_REQUEST_MS) assertEquals(load.retried, 0);
});

Deno.test("rolling restart: two services serve every TCP port together, and then one of them does alone", async () => {
  await using weir = await RestartWeir.start({});
  const { current } = weir;
  const pages = [
    `http://${current.httpAddress}/healthcheck`,
    `http://${current.debugAddress}/healthcheck`,
    `http://${weir.pullAddress}/metrics`,
  ];
  const statuses = async () => {
    const seen: number[] = [];
    for (const page of pages) {
      // No connection is kept: each may come to either service.
      const response = await fetch(page, { headers: { connection: "close" } });
      await response.body?.cancel();
      seen.push(response.status);
    }
    return seen;
  };
  const together: number[][] = [];
  await weir.restart(async () => {
    for (let round = 0; round < 10; round++) together.push(await statuses());
  });
  assertEquals(together, Array.from({ length: 10 }, () => [200, 200, 200]));
  assertEquals(await statuses(), [200, 200, 200]);
});

/**
 * Weir at addresses that stay the same while its services take turns: each starts while the previous one
 * serves, which is stopped when the new one is ready.
 */
class RestartWeir implements AsyncDisposable {
  readonly pullAddress: string;
  readonly #start: () => Promise<RestartedService>;
  #current: RestartedService;

  private constructor(first: RestartedService, start: () => Promise<RestartedService>, pullAddress: string) {
    this.#current = first;
    this.#start = start;
    this.pullAddress = pullAddress;
  }

  /** Starts the first service, in this process or as one, on TCP ports that all of them share. */
  static async start(
    env: Readonly<Record<string, string>>,
    run: typeof startWeir | typeof ServeFixture.start = ServeFixture.start,
  ): Promise<RestartWeir> {
    const [grpc, http, debug, pull] = Array.from({ length: 4 }, () => String(freePort()));
    const pullAddress = `127.0.0.1:${pull}`;
    const all = {
      GRPC_PORT: `${grpc}`,
      PORT: `${http}`,
      DEBUG_PORT: `${debug}`,
      PULL_METRICS_ADDR: pullAddress,
      DISABLE_STATS: "false",
      USE_STATSD: "false",
      USE_PULL_METRICS: "true",
      ...env,
    };
    const start = () => run({ rules: { "shop.yaml": UNREACHED }, env: all });
    return new RestartWeir(await start(), start, pullAddress);
  }

  get current(): RestartedService {
    return this.#current;
  }

  async restart(between: () => Promise<void>): Promise<void> {
    await using old = this.#current;
    this.#current = await this.#start();
    await between();
    await stopped(old);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using last = this.#current;
    await stopped(last);
  }
}

type RestartedService = Awaited<ReturnType<typeof startWeir | typeof ServeFixture.start>>;

/** Limits that no test reaches. */
const UNREACHED = `domain: shop
descriptors:
- { key: user, rate_limit: { unit: day, requests_per_unit: 1000000000 } }
- { key: path, rate_limit: { unit: day, requests_per_unit: 1000000000 } }
`;

async function stopped(service: RestartedService): Promise<void> {
  assertEquals(await service.stop() ?? 0, 0, "Weir ended with this exit code");
}

/** Restarts once while calls are made, and ends them; none may fail. */
async function restartUnderLoad(weir: RestartWeir, load: RestartLoad): Promise<void> {
  {
    await using _ends = load;
    await load.answers(150);
    await weir.restart(() => load.answers(150));
    await load.answers(150);
  }
  assertEquals(load.failures, [], String(load));
}

/**
 * Callers of `/json` that keep their connections. Each opens another one after `connection: close`, and
 * when the server closed an idle one. A request without one byte of an answer is sent again and counted as
 * retried.
 */
class HttpLoad extends RestartLoad {
  constructor(address: string) {
    super();
    this.start(Array.from({ length: 8 }, () => () => this.#keep(Number(address.split(":")[1]))));
  }

  async #keep(port: number): Promise<void> {
    while (this.isGoing) {
      using connection = new HttpConnection(port);
      for (let requests = 1; this.isGoing && connection.isOpen; requests++) {
        const answer = await connection.ask();
        if (answer.startsWith("HTTP/1.1 200 ")) this.answered++;
        else if (answer !== "") this.failures.push(answer);
        else if (requests === 1) this.resets++;
        else this.retried++;
        if (/^connection: close\r$/im.test(answer)) break;
        await this.pause();
      }
    }
  }
}

const BODY = JSON.stringify({ domain: "shop", descriptors: [{ entries: [{ key: "user", value: "bob" }] }] });
const REQUEST = `POST /json HTTP/1.1\r\nhost: weir\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

class HttpConnection implements Disposable {
  readonly #socket: net.Socket;
  #heard = "";
  isOpen = true;
  #onChange = () => {};

  constructor(port: number) {
    this.#socket = net.connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.on("error", () => {});
    this.#socket.on("data", (chunk) => {
      this.#heard += String(chunk);
      this.#onChange();
    });
    for (const event of ["end", "close"]) {
      this.#socket.on(event, () => {
        this.isOpen = false;
        this.#onChange();
      });
    }
  }

  /** The whole answer, or what arrived before the end of the connection, which may be nothing. */
  ask(): Promise<string> {
    this.#heard = "";
    return new Promise((resolve) => {
      this.#onChange = () => {
        const end = this.#heard.indexOf("\r\n\r\n");
        const length = /^content-length: ([0-9]+)\r$/im.exec(this.#heard)?.[1];
        const isWhole = end > 0 && this.#heard.length >= end + 4 + Number(length);
        if (isWhole || !this.isOpen) resolve(this.#heard);
      };
      this.#socket.write(REQUEST);
    });
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Measures the longest pause of this process: after a long one, short limits of time prove nothing. */
class PauseWatch implements Disposable {
  longestMs = 0;
  #cancel = () => {};

  constructor() {
    this.#tick();
  }

  #tick(): void {
    const begin = systemClock.elapsed();
    this.#cancel = systemClock.after(5, () => {
      this.longestMs = Math.max(this.longestMs, systemClock.elapsed() - begin);
      this.#tick();
    });
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}
