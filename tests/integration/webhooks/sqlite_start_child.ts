import { systemClock } from "../../../src/base/clock.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { audit } from "../../contract/webhook_store_bed.ts";
import { QUIET } from "../../harness/sqlite_fixture.ts";
import { addAudit } from "../../../src/webhooks/store/audit_log.ts";

/** Opens a store, writes to it, and closes it; waits as long as it takes for others that do the same. */
const [path = ""] = Deno.args;
const store = await openSqliteStore({ path, logger: QUIET, clock: systemClock, busyTimeoutMs: 60_000 });
await store.write(addAudit, audit());
await store.close();
