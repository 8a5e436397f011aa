import { PostgresServer } from "../../tests/harness/postgres_server.ts";
import { until } from "../../tests/harness/until.ts";
import { deliveriesDone, postgresStore } from "./postgres_counts.ts";
import { WebhookBench } from "./webhook_service.ts";

/** Events that are posted at the same time. */
const CALLERS = 16;
/** Events before the counted ones, so that each page that they write has been written since the last checkpoint. */
const WARM_UP_EVENTS = 100;
const REMOVAL_MS = 300_000;
/** Neither a checkpoint nor a vacuum changes the counts by its time. */
const SETTINGS = { checkpoint_timeout: "1d", max_wal_size: "8GB", shared_buffers: "128MB", fsync: "on" };
/** A busy machine changes no count. */
const PATIENT = { WEBHOOK_STORE_STATEMENT_TIMEOUT: "60s", WEBHOOK_TIMEOUT: "60s" };
const COUNTS = `SELECT (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace),
  pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), txid_snapshot_xmax(txid_current_snapshot())`;
const ROWS = `SELECT sum(n_tup_ins) FILTER (WHERE relname IN ('event', 'delivery', 'attempt')), sum(n_tup_upd)
  FROM pg_stat_user_tables`;

/** The amount of work. */
interface StoreLoad {
  readonly instances: number;
  readonly events: number;
  /** Each event goes to all of them. */
  readonly endpoints: number;
}

/** The traces of events and their deliveries in PostgreSQL. */
export interface StoreRun extends StoreLoad {
  /** Of tables and indexes, without a vacuum. */
  readonly bytes: number;
  readonly walBytes: number;
  /** Transactions that wrote. */
  readonly transactions: number;
  /** Rows that an update replaced. */
  readonly deadRows: number;
  /** Of the removal of all events and deliveries after their retention. */
  readonly removalWalBytes: number;
}

/** Posts events, waits for their deliveries and for the end of their retention; throws unless each was delivered once. */
export async function runOnPostgres(load: StoreLoad): Promise<StoreRun> {
  await using server = await PostgresServer.start({ settings: SETTINGS });
  const database = await server.database();
  const key = crypto.getRandomValues(new Uint8Array(32)).toBase64();
  const store = postgresStore(database.url(), { WEBHOOK_ENCRYPTION_KEY: key, ...PATIENT });
  const { events, endpoints, instances } = load;
  const [before, after] = await withBench({ instances, store: store.settings }, async (bench) => {
    await bench.addEndpoints(bench.receiverUrls(endpoints));
    const never = new AbortController().signal;
    await postEvents(bench, WARM_UP_EVENTS);
    await deliveriesDone(store, WARM_UP_EVENTS * endpoints, never);
    const before = await numbersOf(database.psql(COUNTS));
    await postEvents(bench, events);
    await deliveriesDone(store, (WARM_UP_EVENTS + events) * endpoints, never);
    return [before, await numbersOf(database.psql(COUNTS))];
  });
  // The sessions have ended, and with that they have reported their rows.
  await database.sessionsEnded();
  const [inserted = 0, updated = 0] = await numbersOf(database.psql(ROWS));
  const share = events / (WARM_UP_EVENTS + events);
  const rows = (WARM_UP_EVENTS + events) * (1 + 2 * endpoints);
  if (inserted !== rows) throw new Error(`Cannot trust run on PostgreSQL: ${inserted} rows, not ${rows}`);
  const [bytes = 0, walBytes = 0, transactions = 0] = after.map((value, index) =>
    value - (before[index] ?? 0)
  );
  return {
    ...load,
    bytes,
    walBytes,
    transactions,
    deadRows: updated * share,
    removalWalBytes: await removalOf(store, () => numbersOf(database.psql(COUNTS))) * share,
  };
}

/** Removes all events, as an instance with a short retention does; the bytes of WAL. */
async function removalOf(
  store: ReturnType<typeof postgresStore>,
  countsNow: () => Promise<number[]>,
): Promise<number> {
  const settings = { ...store.settings, WEBHOOK_RETENTION: "1s" };
  const [, before = 0] = await countsNow();
  await withBench({ instances: 1, store: settings }, async () => {
    const isEmpty = async () => await store.count("SELECT count(*) AS number FROM event") === 0;
    await until("the removal of all events", isEmpty, { deadlineMs: REMOVAL_MS, intervalMs: 100 });
  });
  const [, after = 0] = await countsNow();
  return after - before;
}

async function withBench<Result>(
  options: { readonly instances: number; readonly store: Readonly<Record<string, string>> },
  use: (bench: WebhookBench) => Promise<Result>,
): Promise<Result> {
  const folder = await Deno.makeTempDir({ prefix: "weir-bench-" });
  await using owned = new AsyncDisposableStack();
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  return await use(owned.use(await WebhookBench.start({ ...options, folder, engine: "native" })));
}

async function postEvents(bench: WebhookBench, events: number): Promise<void> {
  let left = events;
  const post = async () => {
    while (left-- > 0) await bench.event();
  };
  await Promise.all(Array.from({ length: CALLERS }, post));
}

async function numbersOf(row: Promise<string>): Promise<number[]> {
  return (await row).split("|").map(Number);
}
