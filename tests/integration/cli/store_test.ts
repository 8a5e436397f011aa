import { assertEquals, assertMatch } from "#assert";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { DatabaseSync } from "node:sqlite";
import { ran } from "../../harness/administration_fixture.ts";
import { freePort } from "../../harness/free_port.ts";
import { sharedPostgres } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";
import { acceptEvent } from "../../../src/webhooks/store/operations/accept.ts";
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
  ...needs(
    ["postgres"],
    "weir store move, check and backup: with a PostgreSQL, whose password is never shown",
  ),
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
        2,
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

Deno.test("weir store backup and check: of a store that is open, by WEBHOOK_STORE and by --store", async () => {
  await inFolder(async (folder, store) => {
    const copy = `${folder}/copy.db`;
    const made = await ran(["store", "backup", copy], { environment: { WEBHOOK_STORE: store } });
    assertEquals([made.code, made.stderr], [
      0,
      "The copy does not contain the encryption key: back up the key separately\n",
    ]);
    assertMatch(
      made.stdout.replace(folder, "DIR"),
      /^DIR\/copy\.db: [1-9]\d* bytes, schema version [1-9]\d*\n$/,
    );
    const checked = await ran(["store", "check", "--store", copy], { environment: { WEBHOOK_STORE: "/no" } });
    assertEquals([checked.code, checked.stderr], [0, ""]);
    const lines = checked.stdout.replaceAll(folder, "DIR").trimEnd().split("\n");
    assertEquals(lines.includes("DIR/copy.db: 1 rows of event"), true);
    assertMatch(lines.at(-1) ?? "", /^DIR\/copy\.db: intact, [1-9]\d* bytes, schema version [1-9]\d*$/);
  });
});

Deno.test("weir store backup and check, as JSON", async () => {
  await inFolder(async (folder, store) => {
    const copy = `${folder}/copy.db`;
    const made = JSON.parse((await ran(["store", "backup", copy, "--store", store, "--json"])).stdout);
    const { code, stdout } = await ran(["store", "check", "--store", copy, "--json"]);
    const { rows, ...checked } = JSON.parse(stdout);
    const { bytes, schemaVersion } = made;
    assertEquals([typeof bytes, typeof schemaVersion, made.file], ["number", "number", copy]);
    assertEquals([code, rows.event], [0, 1]);
    assertEquals(checked, { store: copy, intact: true, bytes, schemaVersion, keys: [], problems: [] });
  });
});

Deno.test("weir store backup: never writes over a file", async () => {
  await inFolder(async (folder, store) => {
    await Deno.writeTextFile(`${folder}/there`, "mine");
    const { code, stdout, stderr } = await ran(["store", "backup", `${folder}/there`, "--store", store]);
    const line = 'Cannot write the copy "DIR/there": the file exists\n';
    assertEquals([code, stdout, stderr.replaceAll(folder, "DIR")], [1, "", line]);
    assertEquals(await Deno.readTextFile(`${folder}/there`), "mine");
  });
});

Deno.test("weir store check: a store that is damaged is not good", async () => {
  await inFolder(async (folder, store) => {
    const copy = `${folder}/copy.db`;
    await ran(["store", "backup", copy, "--store", store]);
    await Deno.writeTextFile(copy, "x".repeat(8_192), { append: false });
    const { code, stdout, stderr } = await ran(["store", "check", "--store", copy]);
    assertEquals([code, stdout], [1, ""]);
    assertEquals(stderr.trimEnd().split("\n").length, 1);
  });
});

const WRONG: Readonly<Record<string, string>> = {
  "store move --from a.db --to b.db":
    "Cannot move a store into another of the same kind: expected a file and a PostgreSQL address",
  "store check --store postgres://u:secret@h:x/d":
    "Cannot use the address of PostgreSQL: expected a port from 1 to 65535 " +
    "(write a / or ? in a password as %2F or %3F)",
  "store backup /tmp/never --store postgres://u@h/d":
    "Cannot copy a store in PostgreSQL: use pg_dump or other means of PostgreSQL",
  "store check --store /no/such.db": 'Cannot open the store "/no/such.db": there is no such file',
  "store backup /tmp/never --store /no/such.db": 'Cannot open the store "/no/such.db": there is no such file',
};

for (const [line, expected] of Object.entries(WRONG)) {
  Deno.test(`weir ${line}: says what is wrong`, async () => {
    assertEquals(await ran(line), { code: 2, stdout: "", stderr: `${expected}\n` });
  });
}

Deno.test("weir store check: a store that breaks a rule is reported, with exit code 1", async () => {
  await inFolder(async (folder, store) => {
    using database = new DatabaseSync(store);
    database.exec("INSERT INTO tally (name, count) VALUES ('delivery.failed', 1)");
    const { code, stdout, stderr } = await ran(["store", "check", "--store", store]);
    assertEquals([code, stderr.replaceAll(folder, "DIR")], [
      1,
      "DIR/weir.db: rule violated: the tallies match the number of rows (1: delivery.failed)\n",
    ]);
    assertMatch(stdout.trimEnd().split("\n").at(-1) ?? "", /: damaged, problems found: 1, /);
  });
});

const KEY = new Uint8Array(32).fill(1).toBase64();

/** Calls of `weir store rekey`, each with what it prints to stderr. */
const WRONG_REKEYS: Readonly<
  Record<string, readonly [environment: Record<string, string>, code: number, line: string]>
> = {
  "without a store": [
    { WEBHOOK_ENCRYPTION_KEY: KEY },
    2,
    "Cannot find the store: set WEBHOOK_STORE or --store",
  ],
  "without a key": [
    { WEBHOOK_STORE: "DIR/weir.db" },
    2,
    "Cannot find the encryption key: set WEBHOOK_ENCRYPTION_KEY or WEBHOOK_ENCRYPTION_KEY_FILE",
  ],
  "with a key that is none": [
    { WEBHOOK_STORE: "DIR/weir.db", WEBHOOK_ENCRYPTION_KEY: `${KEY},secret-text` },
    2,
    "Invalid WEBHOOK_ENCRYPTION_KEY (value not shown): expected",
  ],
  "with the key file of another store": [
    { WEBHOOK_STORE: "DIR/weir.db", WEBHOOK_ENCRYPTION_KEY_FILE: "DIR/none.key" },
    2,
    "Cannot find the encryption key: set WEBHOOK_ENCRYPTION_KEY or WEBHOOK_ENCRYPTION_KEY_FILE",
  ],
  "with a store that is missing": [
    { WEBHOOK_STORE: "DIR/none.db", WEBHOOK_ENCRYPTION_KEY: KEY },
    2,
    'Cannot open the store "DIR/none.db": there is no such file',
  ],
};

for (const [title, [environment, code, line]] of Object.entries(WRONG_REKEYS)) {
  Deno.test(`weir store rekey: ${title}`, async () => {
    await inFolder(async (folder) => {
      const inside = Object.entries(environment).map(([name, value]) => [name, value.replace("DIR", folder)]);
      const refused = await ran("store rekey", { environment: Object.fromEntries(inside) });
      const stderr = refused.stderr.replaceAll(folder, "DIR");
      assertEquals([refused.code, refused.stdout, stderr.includes(line)], [code, "", true], stderr);
      assertEquals(stderr.includes("secret-text"), false);
      // It creates no key.
      const files = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
        name.endsWith("key")
      );
      assertEquals(files, []);
    });
  });
}
