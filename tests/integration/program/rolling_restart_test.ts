import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { CallLog } from "../../harness/call_log.ts";
import { PauseWatch } from "../../harness/pause_watch.ts";
import { RestartGrpcLoad } from "../../harness/restart_grpc_load.ts";
import { RestartLoad } from "../../harness/restart_load.ts";
import { restartUnderLoad, RestartWeir } from "../../harness/restart_weir.ts";

async function withSocketFolder(run: (env: Record<string, string>) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  try {
    await run({ GRPC_UDS: join(folder, "grpc.sock") });
    assertEquals([...Deno.readDirSync(folder)].map((entry) => entry.name), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const LONG_PAUSE_MS = 300;

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
        const log = new CallLog();
        using pauses = new PauseWatch();
        await using weir = await RestartWeir.start({ GRPC_ENGINE: engine, ...env }, where);
        {
          await using _load = new RestartLoad(weir.current.grpcAddress, log, { kept: 4, renewed: 2 });
          await restartUnderLoad(weir, log);
        }
        assertEquals(log.failures, [], String(log));
        // Our own engine names its last stream when all that was sent has come: nothing is ever sent again.
        // It waits a second for that, which a machine may let pass that stands still.
        if (engine === "native" && pauses.longestMs < LONG_PAUSE_MS) assertEquals(log.retried, 0);
        // Where processes share a port, the kernel deals connections out before they are accepted, and those
        // that wait in the queue of the closing one are reset. No call was sent on them; only the kernel can
        // hand them on (net.ipv4.tcp_migrate_req). A file that passes on has no such moment.
        if (!place.startsWith("TCP")) assertEquals(log.resets, 0);
        await weir.stop();
      }));
  }
}

for (const engine of ["native", "grpc-js"]) {
  Deno.test(`rolling restart, ${engine} over TCP: a client of gRPC with its own retry loses no call`, async () => {
    const log = new CallLog();
    await using weir = await RestartWeir.start({ GRPC_ENGINE: engine });
    {
      await using _load = new RestartGrpcLoad(weir.current.grpcAddress, log, 4);
      await restartUnderLoad(weir, log);
    }
    assertEquals(log.failures, [], String(log));
    await weir.stop();
  });
}
