import { systemClock } from "../../src/base/clock.ts";
import { DispatchLock } from "../../src/webhooks/store/sqlite/dispatch_lock.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import { WorkflowRunner } from "../../src/webhooks/workflows/runner.ts";
import { GivenWorkflows, KeptLines } from "./workflow_fixture.ts";
import { voidClaims } from "../../src/webhooks/store/operations/claims.ts";

// Runs the executions of a store until the process is killed, by itself at the given point or by its parent.
if (import.meta.main) {
  const [path = "", round = "", point = "", hits = "0"] = Deno.args;
  const logger = new KeptLines();
  const lock = DispatchLock.take(path);
  if (lock === undefined) throw new Error(`Cannot lock the store "${path}": somebody has it`);
  const store = await openSqliteStore({ path, logger, clock: systemClock });
  await store.write(voidClaims, { now: Date.now(), which: "all" });
  let left = Number(hits);
  const runner = new WorkflowRunner({
    store,
    workflows: new GivenWorkflows(),
    fetch: globalThis.fetch,
    limit: () => Promise.resolve({ code: "OK" }),
    clock: systemClock,
    random: Math.random,
    newId: () => crypto.randomUUID(),
    env: { ROUND: round },
    maxRunning: 50,
    logger,
    atStep(reached) {
      if (reached === point && --left === 0) Deno.kill(Deno.pid, "SIGKILL");
    },
  });
  runner.start();
}
