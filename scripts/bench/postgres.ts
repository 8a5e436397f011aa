import { PostgresServer } from "../../tests/harness/postgres_server.ts";
import type { LoadsSetup } from "./bench_loads.ts";
import { median } from "../../tests/harness/percentile.ts";
import {
  type BenchStore,
  deliveriesDone,
  executionsDone,
  fileStore,
  postgresStore,
} from "./postgres_counts.ts";
import { bareTransactions } from "./postgres_yardstick.ts";
import { storeFile, WebhookBench } from "./webhook_service.ts";
import { deliveriesPerSecond, ENDPOINTS, triggersPerSecond } from "./webhooks.ts";

/** The default of `WEBHOOK_STORE_POOL_SIZE`. */
const CONNECTIONS = 10;
/** The yardstick takes such a part of the time that a load takes. */
const YARDSTICK_SHARE = 2;
/** Amounts of the measurement, and of the previous one it, which warms the processes. */
const WHOLE = { triggers: 2_000, events: 40, warmUpTriggers: 1_500, warmUpEvents: 10 } as const;
const QUICK = { triggers: 100, events: 2, warmUpTriggers: 10, warmUpEvents: 1 } as const;

/** The compared stores, as tables name them; the others are compared with the file. */
export const STORES = [
  "SQLite, one instance",
  "PostgreSQL, one instance",
  "PostgreSQL, three instances",
] as const;
/** The name of what is compared. */
type StoreName = typeof STORES[number];

const INSTANCES: Readonly<Record<StoreName, number>> = {
  "SQLite, one instance": 1,
  "PostgreSQL, one instance": 1,
  "PostgreSQL, three instances": 3,
};

/** Speed of one store; medians of the rounds. */
interface StoreSpeed {
  readonly store: StoreName;
  /** Triggers a second that were accepted, and deliveries a second that arrived. */
  readonly triggers: number;
  readonly deliveries: number;
  /** Medians of the ratios to the bare transactions of the same round. */
  readonly triggersToBare: number;
  readonly deliveriesToBare: number;
}

/** Speed of the webhook service on PostgreSQL, and of plain transactions. */
export interface PostgresOutcome {
  /** Transactions a second of a bare client, two rows in each. */
  readonly bareTransactions: number;
  readonly connections: number;
  readonly stores: readonly StoreSpeed[];
}

interface Rates {
  readonly triggers: number;
  readonly deliveries: number;
}

interface Round {
  readonly bare: number;
  readonly rates: Readonly<Record<StoreName, Rates>>;
}

/** Measures triggers and deliveries on one PostgreSQL with one instance and with three, and next to it on a file. */
export async function measurePostgres(setup: LoadsSetup): Promise<PostgresOutcome> {
  const settings = { fsync: "on", autovacuum: "on", shared_buffers: "128MB" };
  await using server = await PostgresServer.start({ settings });
  const rounds: Round[] = [];
  for (let number = 1; number <= setup.options.rounds; number++) {
    const round = await measureOnce(server, setup);
    rounds.push(round);
    setup.say(`postgres ${number}: ${JSON.stringify(round)}`);
  }
  return {
    bareTransactions: median(rounds.map(({ bare }) => bare)),
    connections: CONNECTIONS,
    stores: STORES.map((store) => {
      const of = (value: (rates: Rates, bare: number) => number) =>
        median(rounds.map(({ rates, bare }) => value(rates[store], bare)));
      return {
        store,
        triggers: of(({ triggers }) => triggers),
        deliveries: of(({ deliveries }) => deliveries),
        triggersToBare: of(({ triggers }, bare) => triggers / bare),
        deliveriesToBare: of(({ deliveries }, bare) => deliveries / bare),
      };
    }),
  };
}

async function measureOnce(server: PostgresServer, setup: LoadsSetup): Promise<Round> {
  const { seconds } = setup.options;
  const yardstick = server.url(await server.createDatabase());
  const bare = await bareTransactions(yardstick, {
    connections: CONNECTIONS,
    seconds: seconds / YARDSTICK_SHARE,
  });
  const onFile = await ratesOf("SQLite, one instance", (folder) => fileStore(storeFile(folder)), setup);
  const onPostgres = async (name: StoreName) => {
    const url = server.url(await server.createDatabase());
    const key = crypto.getRandomValues(new Uint8Array(32)).toBase64();
    return await ratesOf(name, () => postgresStore(url, { WEBHOOK_ENCRYPTION_KEY: key }), setup);
  };
  const rates = {
    "SQLite, one instance": onFile,
    "PostgreSQL, one instance": await onPostgres("PostgreSQL, one instance"),
    "PostgreSQL, three instances": await onPostgres("PostgreSQL, three instances"),
  };
  return { bare, rates };
}

/** On an empty store with new processes. What was accepted is carried out before anything else is measured. */
async function ratesOf(
  name: StoreName,
  storeIn: (folder: string) => BenchStore,
  { options: { engine, isQuick }, signal }: LoadsSetup,
): Promise<Rates> {
  await using owned = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir-bench-" });
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  const store = storeIn(folder);
  const instances = INSTANCES[name];
  const bench = owned.use(await WebhookBench.start({ folder, engine, store: store.settings, instances }));
  const amount = isQuick ? QUICK : WHOLE;
  const warmUpTriggers = amount.warmUpTriggers * instances;
  await triggersPerSecond(bench, { name: "warm-up", count: warmUpTriggers });
  await executionsDone(store, warmUpTriggers, signal);
  const triggers = await triggersPerSecond(bench, { name: "bench", count: amount.triggers });
  await executionsDone(store, warmUpTriggers + amount.triggers, signal);
  await bench.addEndpoints(bench.receiverUrls(ENDPOINTS));
  const warmUpEvents = amount.warmUpEvents * instances;
  await deliveriesPerSecond(bench, warmUpEvents, signal);
  await deliveriesDone(store, warmUpEvents * ENDPOINTS, signal);
  const deliveries = await deliveriesPerSecond(bench, amount.events, signal);
  await deliveriesDone(store, (warmUpEvents + amount.events) * ENDPOINTS, signal);
  return { triggers, deliveries };
}
