import { assert, assertEquals } from "#assert";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  claim,
  claimRuns,
  execution,
  finish,
  newId,
  NOW,
  saveVersion,
} from "../../contract/webhook_store_bed.ts";
import { handled } from "../../harness/handled.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";
import { HeldCommits, openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import { acceptExecution } from "../../../src/webhooks/store/operations/accept.ts";
import { releaseClaims } from "../../../src/webhooks/store/operations/claims.ts";
import { renewClaims } from "../../../src/webhooks/store/operations/delivery_claims.ts";
import { commitExecution, renewExecutionClaims } from "../../../src/webhooks/store/operations/executions.ts";

const MANY_TALLIES = `
  INSERT INTO tally (name, count) SELECT 'delivery.attempting', 1 - 2 * (n % 2) FROM generate_series(1, 600) AS n`;

postgres.test("a store on postgres makes few rows of what it tallied, while others tally", async (database) => {
  const stores = [await openStoreAt(database.url()), await openStoreAt(database.url())] as const;
  await addEndpoint(stores[0]);
  const add = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => addEvent(stores[index % 2] ?? stores[0])));
  await add(600);
  // Few rows are of many events, and so as many again as are worth folding.
  await database.psql(MANY_TALLIES);
  const rows = async () => Number(await database.psql("SELECT count(*) FROM tally"));
  assertEquals(await rows() > 600, true);
  const clear = (store: typeof stores[number]) => store.clearRemoved({ now: NOW, newId });
  const [, ...isMore] = await Promise.all([add(100), ...stores.map(clear)]);
  assertEquals([isMore, await rows() <= 110], [[false, false], true]);
  assertEquals((await stores[1].metrics(NOW)).deliveries.attempting, 700);
  assertEquals((await checkStore(database.url())).problems, []);
  // So few are left as they are.
  const before = await rows();
  await clear(stores[0]);
  assertEquals(await rows(), before);
  for (const store of stores) await store.close();
});

postgres.test("a store on postgres tells its size, or 0 where the server does not say it", async (database) => {
  await using store = await openStoreAt(database.url());
  assertEquals((await store.metrics(NOW)).bytes > 100_000, true);
  await database.psql("REVOKE EXECUTE ON FUNCTION pg_total_relation_size(regclass) FROM PUBLIC");
  assertEquals((await store.metrics(NOW)).bytes, 0);
});

postgres.test("a store on postgres knows the time of the database, and counts its commits", async (database) => {
  let commits = 0;
  const onCommit = () => void commits++;
  await using store = await openStoreAt(database.url(), { onCommit });
  commits = 0;
  const time = async () =>
    Math.round(Number(await database.psql("SELECT extract(epoch FROM clock_timestamp()) * 1000")));
  const [before, told, after] = [await time(), await store.databaseTime(), await time()];
  assertEquals([before <= told + 1, told <= after + 1], [true, true]);
  await addEndpoint(store);
  assertEquals([commits, store.transactionRetries, store.waiting], [1, 0, 0]);
});

postgres.test("a store on postgres that cannot be opened says why, without the password", async ({ server }) => {
  const failure = await openStoreAt(server.url("nowhere")).catch((error: unknown) => error);
  assert(failure instanceof StoreError && failure.message.includes('database "nowhere" does not exist'));
  assertEquals(/cr@et|cr%40et/.test(Deno.inspect(failure)), false);
});

postgres.test("what was claimed by a commit without an answer is released by its claim", async (database) => {
  await using relay = await startTcpRelay(database.server.port);
  await using store = await openStoreAt(database.url().replace(`:${database.server.port}`, `:${relay.port}`));
  const to = await addEndpoint(store, { concurrency: 1 });
  await addEvent(store);
  await saveVersion(store);
  await store.write(acceptExecution, execution(), { now: NOW });
  const claims: Readonly<Record<string, () => Promise<readonly unknown[]>>> = {
    delivery: () => claim(store, [to]),
    execution: () => claimRuns(store, { max: 1 }),
  };
  await using held = await HeldCommits.prepare(database);
  for (const [table, take] of Object.entries(claims)) {
    // The commit is held up, while we are cut off.
    await held.hold(table);
    const unanswered = take().then(() => "answered", ({ code }) => code);
    await held.caught();
    relay.dropAll();
    assertEquals(await unanswered, "busy");
    await held.letGo();
    const claimed = `SELECT claim_id FROM ${table} WHERE claim_id IS NOT NULL`;
    const claimId = await until(
      "its claim",
      async () => await database.psql(claimed) || undefined,
    );
    await store.write(releaseClaims, [claimId], NOW);
    await database.psql(`DROP TRIGGER held ON ${table}`);
    assertEquals((await take()).length, 1);
  }
});

postgres.test("however many events come, claims are renewed and results written before them", async (database) => {
  await using store = await openStoreAt(database.url(), { poolSize: 2 });
  const to = await addEndpoint(store);
  await addEvent(store);
  await saveVersion(store);
  await store.write(acceptExecution, execution(), { now: NOW });
  const [claimed] = await claim(store, [to]);
  const [started] = await claimRuns(store, { max: 1 });
  assert(claimed !== undefined && started !== undefined);
  const { claimId, execution: { id: executionId } } = started;
  let accepted = 0;
  const events = handled(
    Promise.all(Array.from({ length: 900 }, () => addEvent(store).then(() => accepted++))),
  );
  const prolonged = await Promise.all([
    store.write(renewClaims, [claimed.claimId], NOW + 70_000),
    store.write(renewExecutionClaims, [claimId], NOW + 70_000),
  ]);
  const written = await Promise.all([
    store.write(commitExecution, {
      executionId,
      claimId,
      now: NOW,
      keepClaim: false,
      change: { status: "succeeded", stepAttempts: 0, finishedAt: NOW },
    }),
    finish(store, claimed, ACKNOWLEDGED),
  ]);
  assertEquals([prolonged, written, accepted < 450], [
    [[claimed.claimId], [claimId]],
    [{ cancelRequested: false }, true],
    true,
  ]);
  await events;
});
