import pg from "pg";

/** Options of a bare transactions. */
interface BareTransactionsOptions {
  readonly connections: number;
  readonly seconds: number;
}

const TABLE = "CREATE TABLE bare (id TEXT PRIMARY KEY, body TEXT NOT NULL)";
const INSERT = { name: "insert", text: "INSERT INTO bare (id, body) VALUES ($1, $2), ($3, $4)" };
const BODY = "x".repeat(200);

/** Transactions a second of a bare client, two rows in each; throws unless every row is there afterwards. */
export async function bareTransactions(
  url: string,
  { connections, seconds }: BareTransactionsOptions,
): Promise<number> {
  const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: url }));
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await clients[0]?.query(TABLE);
    const begin = performance.now();
    const end = begin + seconds * 1_000;
    const counts = await Promise.all(clients.map((client) => transactionsUntil(client, end)));
    const perSecond = sum(counts) / (performance.now() - begin) * 1_000;
    const rows = Number((await clients[0]?.query("SELECT count(*) AS rows FROM bare"))?.rows[0].rows);
    if (rows === 2 * sum(counts)) return perSecond;
    throw new Error(`Cannot trust bare transactions: there are ${rows} rows of ${sum(counts)} transactions`);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function transactionsUntil(client: pg.Client, end: number): Promise<number> {
  let count = 0;
  while (performance.now() < end) {
    await client.query("BEGIN");
    await client.query({ ...INSERT, values: [crypto.randomUUID(), BODY, crypto.randomUUID(), BODY] });
    await client.query("COMMIT");
    count++;
  }
  return count;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
