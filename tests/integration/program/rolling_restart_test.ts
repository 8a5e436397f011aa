import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { startEnvoy } from "../../harness/envoy.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { PauseWatch } from "../../harness/pause_watch.ts";
import { HttpLoad } from "../../harness/restart_http_load.ts";
import { FrameLoad, RestartLoad } from "../../harness/restart_load.ts";
import { restartUnderLoad, RestartWeir } from "../../harness/restart_weir.ts";
import { needs } from "../../harness/tools.ts";

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
  "TCP with two workers": (run: (env: Record<string, string>) => Promise<void>) => run({ WORKERS: "2" }),
  "a unix socket": withSocketFolder,
};

for (const [place, within] of Object.entries(PLACES)) {
  for (const engine of ["native", "grpc-js"]) {
    // One engine as processes, whose end closes all that is open.
    const where = engine === "native" ? "process" : "here";
    Deno.test(`rolling restart, ${engine} over ${place}: a client that goes when it is asked to loses no call`, () =>
      within(async (env) => {
        using pauses = new PauseWatch();
        await using weir = await RestartWeir.start({ GRPC_ENGINE: engine, ...env }, where);
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

/** No call was sent: the kernel resets what waits in the queue of a listener that closes. */
const NOT_ACCEPTED = /^No connection established\. Last error: read ECONNRESET/;

/** Callers by grpc-js, which sends again by itself what a server says it has not begun. */
class LibraryLoad extends RestartLoad {
  constructor(address: string) {
    super();
    this.start(Array.from({ length: 4 }, () => () => this.#keep(address)));
  }

  async #keep(address: string): Promise<void> {
    // Of its own, or all channels would share one connection.
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

/** Callers over HTTP. Any answer but 200 is a failure. */
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
  // Within the delay each connection is told to go.
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
