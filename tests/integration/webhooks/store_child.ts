/** The work of another process with the files of a store; it reports its progress. */
import { DatabaseSync } from "node:sqlite";
import { SecretBox } from "../../../src/webhooks/secrets/secret_box.ts";
import { addAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import { DispatchLock } from "../../../src/webhooks/store/sqlite/dispatch_lock.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { audit } from "../../contract/webhook_store_bed.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { QUIET } from "../../harness/sqlite_fixture.ts";

const ACTIONS: Readonly<Record<string, (path: string, more?: string) => Promise<void> | void>> = {
  /** Takes the lock of a store and keeps it until it is killed. */
  lock(path) {
    console.log(DispatchLock.take(path) === undefined ? "refused" : "taken");
    setInterval(() => {}, 60_000);
  },
  /** Opens a store, writes to it, and closes it; waits as long as it takes for others that do the same. */
  async open(path) {
    const store = await openSqliteStore({ path, logger: QUIET, clock: systemClock, busyTimeoutMs: 60_000 });
    await store.write(addAudit, audit());
    await store.close();
  },
  /** Locks a database against writers, for some milliseconds or until it is killed. */
  async write(path, forMs = "600000") {
    const database = new DatabaseSync(path);
    database.exec("BEGIN IMMEDIATE");
    console.log("locked");
    await new Promise((resolve) => setTimeout(resolve, Number(forMs)));
    database.exec("COMMIT");
    database.close();
    console.log("released");
  },
  /** Opens a box at the same moment as other processes, and prints which key seals there. */
  async seal(keyFile, gate = "") {
    const logger = new RecordedLogger();
    console.log("ready");
    while (!await Deno.stat(gate).then(() => true, () => false));
    const box = await SecretBox.open({ keyFile, logger });
    console.log(JSON.stringify([box.keyId, logger.lines.length]));
  },
};

const [action = "", path = "", ...more] = Deno.args;
await ACTIONS[action]?.(path, ...more);
