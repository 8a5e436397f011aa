import { audit } from "../../contract/webhook_store_bed.ts";
import { openStoreAt } from "../../harness/postgres_fixture.ts";
import { QUIET } from "../../harness/sqlite_fixture.ts";
import { addAudit } from "../../../src/webhooks/store/audit_log.ts";

/** Opens a store, writes to it, and closes it; says what the store has to say. */
const [url = ""] = Deno.args;
const logger = { ...QUIET, info: (message: string) => console.log(message) };
const store = await openStoreAt(url, { logger });
await store.write(addAudit, audit());
await store.close();
