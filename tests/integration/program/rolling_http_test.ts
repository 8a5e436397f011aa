import { assertEquals } from "@std/assert";
import { CallLog } from "../../harness/call_log.ts";
import { PauseWatch } from "../../harness/pause_watch.ts";
import { RestartHttpLoad } from "../../harness/restart_http_load.ts";
import { restartUnderLoad, RestartWeir } from "../../harness/restart_weir.ts";

const LONG_PAUSE_MS = 30;

// A server of HTTP/1.1 cannot ask a client to go ahead of time, as GOAWAY does: when the runtime closes,
// it drops what it has not begun to read, answered by no octet. The client sends that again.
Deno.test("rolling restart over HTTP: a client that keeps its connections loses no request", async () => {
  const log = new CallLog();
  using pauses = new PauseWatch();
  await using weir = await RestartWeir.start({ SHUTDOWN_DELAY: "100ms" });
  {
    await using _load = new RestartHttpLoad(weir.current.httpAddress, log, 8);
    await restartUnderLoad(weir, log);
  }
  assertEquals(log.failures, [], String(log));
  // Within the delay each connection is told to go, which a machine may let pass that stands still.
  if (pauses.longestMs < LONG_PAUSE_MS) assertEquals(log.retried, 0);
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
