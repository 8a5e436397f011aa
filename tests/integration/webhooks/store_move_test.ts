import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "#assert";
import { DatabaseSync } from "node:sqlite";
import { basename } from "node:path";
import { DispatchLock } from "../../../src/webhooks/store/sqlite/dispatch_lock.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { migrate } from "../../../src/webhooks/store/sqlite/migration.ts";
import { MIGRATIONS } from "../../../src/webhooks/store/schema.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import { openSqliteStore } from "../../../src/webhooks/store/sqlite/store.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { withPostgresStore } from "../../../src/webhooks/store/maintenance/connection.ts";
import { get, type Work } from "../../../src/webhooks/store/work.ts";
import { claim, NOW } from "../../contract/webhook_store_bed.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import type { PostgresDatabase } from "../../harness/postgres_server.ts";
import { openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";
import { allRows, fillLikeService, fillRandomly, move, moveInUse } from "../../harness/store_move_fixture.ts";
import { voidClaims } from "../../../src/webhooks/store/operations/claims.ts";
import { dueEndpoints } from "../../../src/webhooks/store/operations/delivery_claims.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";
import { TABLE_NAMES } from "../../../src/webhooks/store/maintenance/tables.ts";

const HALF_FILLED = 'it is half filled; run "weir store move" again to complete it';
const NOT_EMPTY = "it holds other rows; expected an empty database, or a file that does not exist";
const NOT_SAME = "its rows differ from the source; stop all writers and run the move again";

/** The bed of a case: the file that is moved, in a folder, and an empty database. */
interface MoveBed {
  readonly database: PostgresDatabase;
  readonly folder: StoreFolder;
  readonly path: string;
  readonly url: string;
  /** Fills the file that is moved. */
  fill(rows: number, seed: number, texts?: readonly string[]): void;
  /** Carries out a statement in the database, as a service. */
  perform<T>(work: Work<T>): Promise<T>;
}

function bedOf(folder: StoreFolder, database: PostgresDatabase): MoveBed {
  const { path } = folder;
  const url = database.url();
  return {
    database,
    folder,
    path,
    url,
    fill: (rows, seed, texts = []) => fillRandomly(path, { rows, random: seededRandom(seed), texts }),
    perform: (work) => withPostgresStore(url, (connection) => connection.perform(work)),
  };
}

const CASES: Readonly<Record<string, (bed: MoveBed) => Promise<void>>> = {
  async "rows of every kind come there and back as they were"(bed) {
    const { path, url, folder, database: { shown } } = bed;
    bed.fill(300, 1);
    const [before, bytes] = [allRows(path), Deno.readFileSync(path)];
    const lines: string[] = [];
    const there = await move(path, url, (line) => lines.push(line));
    const tables = TABLE_NAMES.length;
    const rows = (tables - 2) * 300 + 2 * 2;
    assertEquals(there, { shown, rows, tables, wasThere: false, replaced: 0, keyFile: undefined });
    assertEquals([lines.length, lines[0]], [2 * tables, "endpoint: 300 rows copied"]);
    assertEquals(await bed.database.psql("SELECT count(*), max(seq) FROM delivery"), `300|${299 * 3 + 2}`);
    const back = folder.file("back.db");
    assertEquals(await move(url, back), { ...there, shown: back });
    assertEquals(namesIn(folder.file(".")), ["back.db", "back.db.lock", "data"]);
    assertEquals(allRows(back), before);
    assertEquals(((await Deno.stat(back)).mode ?? 0) & 0o777, 0o600);
    assertEquals(Deno.readFileSync(path), bytes);
  },

  async "what a service has written is whole there, and numbers go on where they were"(bed) {
    const { folder, url, path } = bed;
    const store = await folder.open();
    await fillLikeService(store);
    await store.close();
    const { keyFile } = await move(path, url);
    assertEquals(keyFile, undefined);
    const [there, here] = [await checkStore(url), await checkStore(path)];
    assertEquals([there.problems, there.counts], [[], here.counts]);
    const inserted = get("INSERT INTO event (id, kind, created_at) VALUES ('x', 'a', 1) RETURNING seq");
    assertEquals(await bed.perform(inserted), { seq: (here.counts["event"] ?? 0) + 1 });
  },

  async "what services have written in PostgreSQL is whole in a file, and goes on from there"(bed) {
    const shared = await openStoreAt(bed.url);
    await fillLikeService(shared);
    const back = bed.folder.file("back.db");
    await refused(
      () => moveInUse(bed.url, back),
      new RegExp(`"${bed.database.shown}": \\d connections of services are open`),
    );
    await shared.close();
    await move(bed.url, back);
    const [there, here] = [await checkStore(back), await checkStore(bed.url)];
    assertEquals([there.problems, there.counts], [[], here.counts]);
    const store = await openSqliteStore({ path: back, logger: QUIET, clock: systemClock });
    const { deliveries } = await store.metrics(NOW);
    assertEquals(deliveries, { attempting: 2, retrying: 0, acknowledged: 0, failed: 0 });
    await store.write(voidClaims, { now: NOW, which: "all" });
    const due = await store.read(dueEndpoints, NOW);
    assertEquals((await claim(store, due)).length, 2);
    await store.close();
  },

  async "a number that a table has given is not given again when its row is gone"(bed) {
    bed.fill(30, 2);
    await move(bed.path, bed.url);
    const inserted = get(
      "INSERT INTO audit (id, at, actor, action, object, details) VALUES ('x', 1, '', '', '', '') RETURNING seq",
    );
    assertEquals(await bed.perform(inserted), { seq: 29 * 3 + 2 + 1 });
  },

  async "a text with U+0000 has U+FFFD in its place, and they are counted"(bed) {
    bed.fill(40, 3, ["\0", "a\0b\0"]);
    const { replaced } = await move(bed.path, bed.url);
    const before = Object.values(allRows(bed.path)).flat();
    assertEquals(replaced, before.join().split(/"(?:a\\u0000b)?\\u0000"/).length - 1);
    assert(replaced > 10);
    const back = bed.folder.file("back.db");
    assertEquals((await move(bed.url, back)).replaced, 0);
    const after = Object.values(allRows(back)).flat();
    assertEquals(after.toSorted(), before.map((row) => row.replaceAll("\\u0000", "\uFFFD")).toSorted());
  },

  async "the file with the key is named, and stays where it is"(bed) {
    bed.fill(1, 4);
    Deno.writeTextFileSync(`${bed.path}.key`, "key");
    assertEquals((await move(bed.path, bed.url)).keyFile, `${bed.path}.key`);
    assertEquals((await move(bed.url, bed.folder.file("back.db"))).keyFile, undefined);
  },

  async "a target with other rows is left as it is, one with the same rows is done"(bed) {
    const { path, url, folder, database: { shown } } = bed;
    bed.fill(5, 5);
    await move(path, url);
    assertEquals((await move(path, url)).wasThere, true);
    assertEquals((await move(url, path)).wasThere, true);
    const [other, before] = [folder.file("other.db"), allRows(path)];
    fillRandomly(other, { rows: 5, random: seededRandom(6) });
    const others = allRows(other);
    await refused(() => move(other, url), `Cannot move into the store "${shown}": ${NOT_EMPTY}`);
    await refused(() => move(url, other), `Cannot move into the store "${other}": ${NOT_EMPTY}`);
    await move(url, folder.file("back.db"));
    assertEquals([allRows(folder.file("back.db")), allRows(other)], [before, others]);
  },

  async "a file that is no store, and the log of one that is gone, stay as they are"(bed) {
    bed.fill(1, 7);
    await move(bed.path, bed.url);
    const file = bed.folder.file("mine");
    Deno.writeTextFileSync(file, "mine");
    await assertRejects(() => move(bed.url, file));
    assertEquals(Deno.readTextFileSync(file), "mine");
    Deno.removeSync(file);
    Deno.writeTextFileSync(`${file}-wal`, "of another");
    const there = `the file "${file}-wal" exists`;
    await refused(() => move(bed.url, file), `Cannot move into the store "${file}": ${there}`);
    assertEquals(Deno.readTextFileSync(`${file}-wal`), "of another");
  },

  async "a store that a service uses is neither moved nor filled"(bed) {
    const { path, url, folder, database: { shown } } = bed;
    bed.fill(5, 8);
    const back = folder.file("back.db");
    const inUse = (store: string, state: string) => `Cannot move the store "${store}": ${state}`;
    const locked = "a service uses it; stop the service first";
    const connected = "1 connections of services are open; stop the service first";
    {
      using _lock = DispatchLock.take(path);
      await refused(() => move(path, url), inUse(path, locked));
    }
    await bed.database.sessionsEnded();
    await withPostgresStore(url, () => refused(() => moveInUse(path, url), inUse(shown, connected)));
    await move(path, url);
    await bed.database.sessionsEnded();
    await withPostgresStore(url, () => refused(() => moveInUse(url, back), inUse(shown, connected)));
    using _lock = DispatchLock.take(back);
    await refused(() => move(url, back), inUse(back, locked));
  },

  async "claims move as they are, but not those of a service that may still be there"(bed) {
    const { url, folder, database: { shown } } = bed;
    bed.fill(5, 9);
    const until = Date.now() + 3_600_000;
    change(bed.path, `UPDATE execution SET lease_until = ${until} WHERE seq = 5`);
    const before = allRows(bed.path);
    await move(bed.path, url);
    const claimed = `a service has claimed work until ${new Date(until).toISOString()}`;
    const back = folder.file("back.db");
    await refused(
      () => move(url, back),
      `Cannot move the store "${shown}": ${claimed}; stop the service first and wait until then`,
    );
    await bed.database.psql("UPDATE execution SET lease_until = 1 WHERE seq = 5");
    await move(url, back);
    change(back, `UPDATE execution SET lease_until = ${until} WHERE seq = 5`);
    assertEquals(allRows(back), before);
  },

  async "who writes to the source meanwhile is noticed, and a half-filled target is not opened"(bed) {
    const { path, url, folder, database: { shown } } = bed;
    bed.fill(5, 10);
    const writing = () => change(path, "UPDATE event SET kind = 'another' WHERE seq = 5");
    await refused(() => move(path, url, once(writing)), `Cannot move into the store "${shown}": ${NOT_SAME}`);
    const opening = async () => await (await openStoreAt(url)).close();
    for (const run of [opening, () => checkStore(url), () => move(url, folder.file("back.db"))]) {
      await refused(run, `Cannot open the store "${shown}": ${HALF_FILLED}`);
    }
    await move(path, url);
    await opening();
  },

  async "a file that is half filled has another name, and is begun anew"(bed) {
    const { path, url, folder } = bed;
    bed.fill(5, 11);
    await move(path, url);
    const back = folder.file("new/back.db");
    const commit = await bed.database.begin("UPDATE event SET kind = 'another' WHERE seq = 5");
    let committed: Promise<void> | undefined;
    await assertRejects(() => move(url, back, () => void (committed ??= commit())));
    await committed;
    const half = `${back}.moving`;
    assertEquals(namesIn(folder.file("new")), [basename(`${back}.lock`), basename(half)]);
    const connection = new SqliteConnection(half);
    const opened = assertThrows(() => migrate(connection));
    assert(opened instanceof StoreError && opened.message.startsWith(`Cannot open the store "${half}": it`));
    connection.close();
    await move(url, back);
    assertEquals(namesIn(folder.file("new")), ["back.db", "back.db.lock"]);
    // So it is when the command is killed at its very end.
    Deno.linkSync(back, half);
    assertEquals((await move(url, back)).wasThere, true);
    assertEquals(namesIn(folder.file("new")).includes(basename(half)), false);
  },
};

for (const [name, run] of Object.entries(CASES)) {
  postgres.test(`a store is moved between a file and PostgreSQL: ${name}`, async (database) => {
    using folder = new StoreFolder();
    await run(bedOf(folder, database));
  });
}

Deno.test("a store is moved only into one of the other kind, and by the release that made it", async () => {
  using folder = new StoreFolder();
  const kinds = "Cannot move a store into another of the same kind: expected a file and a PostgreSQL address";
  await refused(() => move(folder.path, folder.file("b.db")), kinds, RangeError);
  await refused(() => move("postgres://a@b/c", "postgresql://d@e/f"), kinds, RangeError);
  const url = "postgres://a:secret@127.0.0.1:1/c";
  await refused(
    () => move(folder.path, url),
    `Cannot open the store "${folder.path}": there is no such file`,
    Deno.errors.NotFound,
  );
  const old = new SqliteConnection(folder.path);
  migrate(old, MIGRATIONS.sqlite.slice(0, 1));
  old.close();
  await refused(
    () => move(folder.path, url),
    `Cannot move the store "${folder.path}": an older release created it; start and stop a service of ` +
      "this release to migrate it",
  );
  fillRandomly(folder.file("new.db"), { rows: 1, random: seededRandom(1) });
  const { message } = await assertRejects(() => move(folder.file("new.db"), url));
  assert(!message.includes("secret") && message.includes("127.0.0.1:1"), message);
});

async function refused(
  run: () => Promise<unknown>,
  message: string | RegExp,
  kind: typeof StoreError | typeof RangeError | typeof Deno.errors.NotFound = StoreError,
): Promise<void> {
  const error = await assertRejects(run);
  assert(error instanceof kind);
  if (typeof message === "string") assertEquals(error.message, message);
  else assertMatch(error.message, message);
}

/** Does something when it is called for the first time. */
function once(run: () => unknown): () => void {
  let isFirst = true;
  return () => {
    if (isFirst) run();
    isFirst = false;
  };
}

function change(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

function namesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).toSorted();
}
