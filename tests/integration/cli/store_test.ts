import { assertEquals, assertMatch } from "@std/assert";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { freePort } from "../../harness/free_port.ts";
import { sharedPostgres } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";
import { acceptEvent } from "../../../src/webhooks/store/accept.ts";
import { TABLE_NAMES } from "../../../src/webhooks/store/maintenance/tables.ts";

const postgres = await sharedPostgres();

const logger = createLogger({ level: "error", format: "text", clock: systemClock, write: () => {} });

/** Gives a folder with a store that holds one event. */
async function inFolder(run: (folder: string, store: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/weir.db`;
  try {
    const store = await openSqliteStore({ path, logger, clock: systemClock });
    try {
      const id = "3b241101-e2bb-4255-8caf-4136c566a962";
      await store.write(acceptEvent, { id, kind: "a.b", body: new Uint8Array([123, 125]) }, { now: 1 });
      await run(folder, path);
    } finally {
      await store.close();
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test({
  ...needs(["postgres"], "weir store move, check and backup: with a PostgreSQL, whose password nobody sees"),
  async fn() {
    await using database = await postgres.database();
    const { port } = database.server;
    const url = database.url();
    const shown = `postgres://weir@127.0.0.1:${port}/${database.name}`;
    const environment = { WEBHOOK_STORE: url };
    await inFolder(async (folder, store) => {
      const copy = `${folder}/copy.db`;
      await ran(["store", "backup", copy, "--store", store]);
      await Deno.writeTextFile(`${copy}.key`, "key");
      const there = await ran(["store", "move", "--from", copy], { environment });
      const lines = there.stderr.replaceAll(folder, "DIR").trimEnd().split("\n");
      assertEquals([there.code, lines.length], [0, 2 * TABLE_NAMES.length + 1]);
      assertEquals([lines.includes("event: 1 rows copied"), lines.at(-1)], [
        true,
        "The encryption key is not moved: set WEBHOOK_ENCRYPTION_KEY_FILE to DIR/copy.db.key, or add its key to " +
        "WEBHOOK_ENCRYPTION_KEY, for every instance",
      ]);
      const holds =
        `holds all 1 rows of the source, in ${TABLE_NAMES.length} tables, compared by counts and SHA-256`;
      assertEquals(there.stdout, `${shown}: ${holds}\n`);
      const again = await ran(["store", "move", "--from", copy], { environment });
      assertEquals(
        again.stdout,
        `${shown}: ${holds.replace("holds", "held")}\n`.replace("source", "source already"),
      );
      const back = await ran(`store move --to ${folder}/back.db`, { environment });
      assertEquals([back.code, back.stdout.replace(folder, "DIR")], [0, `DIR/back.db: ${holds}\n`]);
      const last =
        "The encryption key is not moved: keep WEBHOOK_ENCRYPTION_KEY and WEBHOOK_ENCRYPTION_KEY_FILE as they are";
      assertEquals(back.stderr.trimEnd().split("\n").at(-1), last);
      const checked = await ran("store check", { environment });
      assertMatch(checked.stdout, /: 1 rows of event\n/);
      assertMatch(checked.stdout, /: intact, [1-9]\d* bytes, schema version [1-9]\d*\n$/);
      const refused = await ran(`store backup ${folder}/no.db`, { environment });
      assertEquals([refused.code, refused.stdout, refused.stderr], [
        1,
        "",
        "Cannot copy a store in PostgreSQL: use pg_dump or other means of PostgreSQL\n",
      ]);
      const nowhere = url.replace(`:${port}/`, `:${freePort()}/`);
      const gone = await ran("store check", { environment: { WEBHOOK_STORE: nowhere } });
      assertEquals([gone.code, gone.stdout], [1, ""]);
      const outputs = [there, again, back, checked, refused, gone].flatMap((
        { stdout, stderr },
      ) => [stdout, stderr]);
      const { password } = new URL(url);
      assertEquals(
        outputs.join().includes(password) || outputs.join().includes(decodeURIComponent(password)),
        false,
      );
    });
  },
});
