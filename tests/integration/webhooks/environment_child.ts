/** A process with foreign settings in its environment; prints the results. */
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { guarded } from "./guarded_fetch_fixture.ts";

/** Each prints a line. */
const ACTIONS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  async fetch(url) {
    await using fetch = guarded();
    const response = await fetch(url);
    await response.text();
    return response.status;
  },
  async postgres(url) {
    const address = parsePostgresAddress(url);
    const [host] = address.fields.hosts;
    if (host === undefined) throw new Error("Cannot connect: the address has no host");
    const limits = { connectTimeoutMs: 60_000, statementTimeoutMs: 10_000, lockTimeoutMs: 5_000 };
    try {
      const connection = await PostgresConnection.open(address, host, { clock: new FakeClock(), ...limits });
      const { rows } = await connection.query(SETTINGS, [], "rows");
      await connection.close();
      return rows[0];
    } catch (error) {
      return String(error);
    }
  },
};

const NAMES = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];
const SETTINGS = `SELECT ${
  [...NAMES, "work_mem", "search_path", "application_name"]
    .map((name) => `current_setting('${name}') AS ${name}`).join(", ")
}`;

const [action = "", ...urls] = Deno.args;
for (const url of urls) console.log(JSON.stringify(await ACTIONS[action]?.(url)));
