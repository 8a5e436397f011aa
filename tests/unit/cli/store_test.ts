import { assertEquals, assertMatch } from "@std/assert";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { DatabaseSync } from "node:sqlite";
import { acceptEvent } from "../../../src/webhooks/store/accept.ts";

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

const WRONG: readonly (readonly [args: readonly string[], code: number, line: string])[] = [
  [["store", "check"], 2, "Cannot find the store: set WEBHOOK_STORE or --store"],
  [["store", "move"], 2, 'Cannot run "store move": --from or --to is missing'],
  [
    ["store", "move", "--from", "a.db"],
    2,
    "Cannot find the store: set WEBHOOK_STORE or --to",
  ],
  [
    ["store", "move", "--from", "a.db", "--to", "b.db"],
    1,
    "Cannot move a store into another of the same kind: expected a file and a PostgreSQL address",
  ],
  [
    ["store", "check", "--store", "postgres://u:secret@h:x/d"],
    1,
    "Cannot use the address of PostgreSQL: expected a port from 1 to 65535 " +
    "(write a / or ? in a password as %2F or %3F)",
  ],
  [["store", "backup"], 2, 'Cannot run "store backup": FILE is missing'],
  [
    ["store", "check", "--store", "/no/such.db"],
    1,
    'Cannot open the store "/no/such.db": there is no such file',
  ],
  [
    ["store", "backup", "/tmp/never", "--store", "/no/such.db"],
    1,
    'Cannot open the store "/no/such.db": there is no such file',
  ],
];

for (const [args, code, line] of WRONG) {
  Deno.test(`weir ${args.join(" ")}: says what is wrong`, async () => {
    const result = await ran(args);
    assertEquals([result.code, result.stdout, result.stderr.split("\n")[0]], [code, "", line]);
  });
}

Deno.test("store check: a store that breaks a rule is told of, with exit code 1", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/weir.db`;
  const logger = createLogger({ level: "error", format: "text", clock: systemClock, write: () => {} });
  try {
    await (await openSqliteStore({ path, logger, clock: systemClock })).close();
    const database = new DatabaseSync(path);
    database.exec("INSERT INTO tally (name, count) VALUES ('delivery.failed', 1)");
    database.close();
    const { code, stdout, stderr } = await ran(["store", "check", "--store", path]);
    assertEquals([code, stderr.replaceAll(folder, "DIR")], [
      1,
      "DIR/weir.db: rule violated: the tallies match the number of rows (1: delivery.failed)\n",
    ]);
    assertMatch(stdout.trimEnd().split("\n").at(-1) ?? "", /: damaged, problems found: 1, /);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
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
    1,
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
