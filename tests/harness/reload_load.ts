import { assertEquals } from "#assert";
import { join } from "node:path";
import { decodeRateLimitResponse, encodeRateLimitRequest } from "../../src/wire/rls.ts";
import { RestartConnection } from "./restart_connection.ts";
import { until } from "./until.ts";

const CONNECTIONS = 4;
const CALLS_AT_ONCE = 16;
/** The limit of version 0; far above what is asked, so that no call is refused. */
const FIRST_LIMIT = 1_000_000;

const REQUEST = encodeRateLimitRequest({
  domain: "shop",
  hitsAddend: 0,
  descriptors: [{ entries: [{ key: "user", value: "bob" }] }, { entries: [{ key: "cart", value: "7" }] }],
});

/** Rules whose version is in the limits of both descriptors. */
function rules(version: number): string {
  const limit = `{ unit: day, requests_per_unit: ${FIRST_LIMIT + version} }`;
  return `domain: shop
descriptors:
- key: user
  rate_limit: ${limit}
- key: cart
  rate_limit: ${limit}
`;
}

/** Callers that take note of the version in each answer. */
class VersionLoad {
  calls = 0;
  /** The newest version that an answer has shown. */
  newest = 0;
  readonly seen = new Set<number>();
  /** Everything that is not an answer of one version, at least as new as what had been seen before. */
  readonly wrong: string[] = [];
  going = true;

  async run(address: string): Promise<void> {
    const connection = await RestartConnection.open(address);
    if (connection === undefined) return void this.wrong.push("no connection");
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => this.#ask(connection)));
    connection.close();
  }

  async #ask(connection: RestartConnection): Promise<void> {
    while (this.going && connection.usable) {
      const known = this.newest;
      const outcome = await connection.call(REQUEST);
      this.calls++;
      if (outcome.kind !== "answer") this.wrong.push(JSON.stringify(outcome));
      else this.#note(outcome.body, known);
    }
  }

  #note(body: Uint8Array, known: number): void {
    const { overallCode, statuses } = decodeRateLimitResponse(body);
    const [user = NaN, cart = NaN, ...more] = statuses.map((status) =>
      (status.currentLimit?.requestsPerUnit ?? NaN) - FIRST_LIMIT
    );
    if (overallCode !== 1 || user !== cart || more.length > 0 || user < known) {
      this.wrong.push(`code ${overallCode}, versions ${user} and ${cart} after ${known}`);
    }
    this.seen.add(user);
    this.newest = Math.max(this.newest, user);
  }
}

/** A Weir whose rules are changed. */
interface ReloadedWeir {
  readonly grpcAddress: string;
  readonly rulesFolder: string;
}

/** The load during a number of reloads. */
interface ReloadLoad {
  readonly swaps: number;
  readonly calls: number;
}

/** The rules that a Weir has to be started with for `reloadUnderLoad`. */
export const FIRST_RULES = { "shop.yaml": rules(0) };

/** Puts a version in force as a careful hand does: written elsewhere and moved into its place. */
async function publish({ rulesFolder }: ReloadedWeir, version: number): Promise<void> {
  const next = join(rulesFolder, "..", "next.yaml");
  await Deno.writeTextFile(next, rules(version));
  await Deno.rename(next, join(rulesFolder, "shop.yaml"));
}

/**
 * Makes calls while the versions follow one another, each as soon as the previous one it has been seen; every call has to
 * be answered by one version, and every version has to be seen.
 */
export async function reloadUnderLoad(weir: ReloadedWeir, { swaps, calls }: ReloadLoad): Promise<void> {
  const load = new VersionLoad();
  const callers = Promise.all(Array.from({ length: CONNECTIONS }, () => load.run(weir.grpcAddress)));
  try {
    for (let version = 1; version <= swaps; version++) {
      const goal = version * calls / (swaps + 1);
      const due = () => load.calls >= goal && load.newest === version - 1;
      await until(`version ${version - 1} and ${goal} calls`, due, { intervalMs: 2 });
      await publish(weir, version);
    }
    const done = () => load.calls >= calls && load.newest === swaps;
    await until(`the last version and ${calls} calls`, done, { deadlineMs: 120_000 });
  } finally {
    load.going = false;
    await callers;
  }
  assertEquals(load.wrong.slice(0, 5), []);
  assertEquals([...load.seen], Array.from({ length: swaps + 1 }, (_, version) => version));
}
