import { percentile } from "../../tests/harness/percentile.ts";
import { QuotaFleet } from "../../tests/harness/quota_fleet.ts";
import { until } from "../../tests/harness/until.ts";
import { startWeir, type WeirProcess } from "../../tests/harness/weir_process.ts";

const RULES = `domain: shop
descriptors:
  - { key: account, rate_limit: { unit: second, requests_per_unit: 100 } }
  - { key: account, value: "blocked*", rate_limit: { unit: second, requests_per_unit: 0 } }
`;
/** Until Weir assigns immediately. */
const SETTLED_SECONDS = 7;
/** Buckets whose first quota is measured. */
export const FIRST_ASSIGNMENTS = 50;
const WAIT = { deadlineMs: 120_000, intervalMs: 50 } as const;
const EVENTS = [
  { second: 0, name: "300 per second, a third at each", rates: [100, 100, 100] },
  { second: 20, name: "90 % of them at edge-1", rates: [270, 15, 15] },
  { second: 40, name: "edge-1 is killed, 150 at each of the others", rates: [0, 150, 150] },
] as const;
const SECONDS = 65;

/** A run of three Envoys with one limit. */
export interface SharesRun {
  readonly limit: number;
  readonly events: readonly { readonly second: number; readonly name: string }[];
  /** The share of each Envoy as Weir assigned it last, and requests that passed, in each second. */
  readonly seconds: readonly { readonly shares: readonly number[]; readonly passed: readonly number[] }[];
}

/** Times without a quota, in milliseconds. */
export interface QuotaWaits {
  /** From the first request of a bucket to the first one that its quota refuses, and requests that passed until then. */
  readonly firstP50Ms: number;
  readonly firstMostMs: number;
  readonly firstMostPassed: number;
  /** From the end of Weir to that of the quota, and from the start of Weir until the quota is back. */
  readonly expiryMs: number;
  readonly returnMs: number;
}

/** Records three Envoys whose load moves, and of which one is killed. */
export async function sharesRun(): Promise<SharesRun> {
  await using weir = await startWeir({ rules: { "shop.yaml": RULES }, env: { LOG_LEVEL: "warning" } });
  await using fleet = await QuotaFleet.start([weir, weir, weir].map(({ grpcAddress }) => grpcAddress));
  await until("Weir to assign", () => fleet.second >= SETTLED_SECONDS, WAIT);
  const begun = fleet.second + 1;
  const shares: number[][] = [];
  for (let second = 0; second < SECONDS; second++) {
    await until(`second ${second}`, () => fleet.second >= begun + second, WAIT);
    const event = EVENTS.find((one) => one.second === second);
    if (event?.rates[0] === 0) await fleet.edges[0]?.envoy.kill();
    if (event !== undefined) fleet.offer(...event.rates);
    await until("the middle of the second", () => fleet.now % 1_000 >= 500, WAIT);
    shares.push(await sharesOf(weir, fleet));
  }
  await until("the last second", () => fleet.second >= begun + SECONDS, WAIT);
  return {
    limit: 100,
    events: EVENTS.map(({ second, name }) => ({ second, name })),
    seconds: shares.map((ofSecond, second) => ({
      shares: ofSecond,
      passed: fleet.edges.map((edge) => edge.of(begun + second).passed),
    })),
  };
}

/** Measures how long requests pass before the first quota, and how long a quota is missing after an outage of Weir. */
export async function quotaWaits(): Promise<QuotaWaits> {
  const options = { rules: { "shop.yaml": RULES }, env: { LOG_LEVEL: "warning" } };
  await using first = await startWeir(options);
  await using fleet = await QuotaFleet.start([first.grpcAddress]);
  await until("Weir to assign", () => fleet.second >= SETTLED_SECONDS, WAIT);
  const [edge] = fleet.edges;
  const passes = async (account: string) => await edge?.ask(account) === 200;
  const waits: number[] = [];
  let firstMostPassed = 0;
  await passes("blocked-warm");
  for (let index = 0; index < FIRST_ASSIGNMENTS; index++) {
    const startedAt = performance.now();
    let passed = 0;
    while (await passes(`blocked-${index}`)) passed++;
    waits.push(performance.now() - startedAt);
    firstMostPassed = Math.max(firstMostPassed, passed);
  }
  const killedAt = performance.now();
  await first.kill();
  await until("the quota to expire", () => passes("blocked-0"), WAIT);
  const expiryMs = performance.now() - killedAt;
  await using second = await startWeir(options);
  fleet.lead(second.grpcAddress);
  const startedAt = performance.now();
  await until("the quota to be back", async () => {
    // The limit of Envoy alone refuses some of ten requests and more in a moment, and a quota of zero refuses all.
    const all = await Promise.all(Array.from({ length: 5 }, () => passes("blocked-0")));
    return !all.includes(true);
  }, { ...WAIT, intervalMs: 1_000 });
  const returnMs = performance.now() - startedAt;
  return {
    firstP50Ms: percentile(waits, 50),
    firstMostMs: Math.max(...waits),
    firstMostPassed,
    expiryMs,
    returnMs,
  };
}

async function sharesOf({ debugAddress }: WeirProcess, fleet: QuotaFleet): Promise<number[]> {
  const { quotas } = await (await fetch(`http://${debugAddress}/quotas`)).json();
  return fleet.edges.map((edge) => {
    const client = quotas[0]?.clients.find(({ name }: { readonly name?: string }) => name === edge.name);
    return client?.isConnected === true ? Math.round(client.share * 10) / 10 : 0;
  });
}
