import type { QuotaEnvoysResults } from "../bench/quota_envoys.ts";
import { FIRST_ASSIGNMENTS } from "../bench/quota_shares.ts";
import { table } from "./generated_page.ts";

const FILTERS = {
  none: "No filter",
  quota: "Quotas",
  ratelimit: "Rate limit service, which asks Weir about each request",
} as const;

/** The measured part of the page about quotas. */
export function quotasPart({ latencies, waits, machine }: QuotaEnvoysResults): string {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
  const seconds = (value: number) => `${(value / 1_000).toFixed(0)} s`;
  const rows = latencies.map(({ filter, p50Ms, p99Ms }) => [FILTERS[filter], ms(p50Ms), ms(p99Ms)]);
  const { firstP50Ms, firstMostMs, firstMostPassed, expiryMs, returnMs } = waits;
  const lines = [
    `Before the first quota of a bucket, all requests passed for ${
      ms(firstP50Ms)
    } (median of ${FIRST_ASSIGNMENTS} buckets), ` +
    `at most for ${ms(firstMostMs)}, which were at most ${firstMostPassed} requests, one after the other.`,
    `After a kill of Weir, a quota lasted for another ${
      seconds(expiryMs)
    }. It lasts 10 to 15 s, by the time of the last report.`,
    `A limit of zero was back ${
      seconds(returnMs)
    } after the start of Weir, because Envoy takes up to 5 s to connect. A rate is ` +
    "back after 16 s; until then, an Envoy gets the rate that its reports have shown. Between expiry and return, " +
    "`expired_assignment_behavior` applies.",
  ];
  return [
    `\`deno run -A scripts/bench/quota_envoys.ts\` measures this on ${machine.cores} cores that Envoy, Weir and the clients share.`,
    table(["Filter of Envoy 1.40", "Request, p50", "Request, p99"], rows),
    lines.map((line) => `- ${line}`).join("\n"),
  ].join("\n\n");
}
