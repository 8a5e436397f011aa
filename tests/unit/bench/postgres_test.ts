import { assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import {
  type BenchStore,
  deliveriesDone,
  executionsDone,
  fileStore,
} from "../../../scripts/bench/postgres_counts.ts";

const NEVER = new AbortController().signal;

Deno.test("fileStore: what a statement answers, and nothing is written", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_bench_" });
  try {
    const path = `${folder}/weir.db`;
    const database = new DatabaseSync(path);
    database.exec("CREATE TABLE row (id INTEGER); INSERT INTO row VALUES (7), (8)");
    database.close();
    const store = fileStore(path);
    assertEquals(await store.count("SELECT max(id) AS number FROM row"), 8);
    await assertRejects(async () => await store.count("DELETE FROM row RETURNING id AS number"));
    assertEquals([store.settings, await store.count("SELECT count(*) AS number FROM row")], [
      { WEBHOOK_STORE: path },
      2,
    ]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("what was carried out has to be all, and once", async () => {
  const execution = { "status = 'succeeded'": 10, "FROM execution": 10, "FROM idempotency": 10 };
  const delivery = { "state = 'acknowledged'": 10, "FROM delivery": 10, "FROM attempt": 10 };
  await executionsDone(storeWith(execution), 10, NEVER);
  await deliveriesDone(storeWith(delivery), 10, NEVER);
  for (const wrong of ["FROM execution", "FROM idempotency"]) {
    await assertRejects(() => executionsDone(storeWith({ ...execution, [wrong]: 11 }), 10, NEVER));
  }
  for (const wrong of ["FROM delivery", "FROM attempt"]) {
    await assertRejects(() => deliveriesDone(storeWith({ ...delivery, [wrong]: 11 }), 10, NEVER));
  }
  const ended = AbortSignal.abort(new Error("ended"));
  await assertRejects(() =>
    executionsDone(storeWith({ ...execution, "status = 'succeeded'": 9 }), 10, ended)
  );
});

/** Answers a statement by the first part that it has. */
function storeWith(numbers: Readonly<Record<string, number>>): BenchStore {
  const count = (sql: string) =>
    Promise.resolve(Object.entries(numbers).find(([part]) => sql.includes(part))?.[1] ?? 0);
  return { name: "a store", settings: {}, count };
}
