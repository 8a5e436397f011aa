import { systemClock } from "../../src/base/clock.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import { addEndpoint, event, execution, NOW, saveVersion } from "../contract/webhook_store_bed.ts";
import { QUIET } from "./sqlite_fixture.ts";
import { acceptEvent, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";

/** Accepts without end, and tells of everything that was answered, until it is killed. */
const [path = ""] = Deno.args;
const store = await openSqliteStore({ path, logger: QUIET, clock: systemClock, busyTimeoutMs: 60_000 });
await saveVersion(store);
await addEndpoint(store);
for (;;) {
  const executions = Array.from({ length: 20 }, () => execution());
  const events = Array.from({ length: 20 }, () => event({ body: new Uint8Array(5_000) }));
  await Promise.all([
    ...executions.map((item) =>
      store.write(acceptExecution, item, { now: NOW }).then(() => say("execution", item.id))
    ),
    ...events.map((item) => store.write(acceptEvent, item, { now: NOW }).then(() => say("event", item.id))),
  ]);
}

function say(what: string, id: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${what} ${id}\n`));
}
