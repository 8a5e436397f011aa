import type { Bucket } from "../../src/quota/bucket_table.ts";
import { QuotaHub, type QuotaHubOptions, type QuotaUsageSink } from "../../src/quota/quota_hub.ts";
import type { Assignment } from "../../src/quota/quota_stream.ts";
import type { Rules } from "../../src/ratelimit/rules/rules.ts";
import { FakeClock } from "./fake_clock.ts";
import { QuotaEnvoy } from "./quota_envoy.ts";
import { hubOptions } from "./quota_history.ts";
import { rulesOf } from "./service_fixture.ts";

const SETTLED_MS = 6_000;
/** A share of zero: a token a year. */
export const NOTHING = "1 1/31536000.31535999 15";
/** Rules of every kind. */
export const QUOTA_RULES = `- {key: k, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: hourly, rate_limit: {unit: hour, requests_per_unit: 3600}}
- {key: free, rate_limit: {unlimited: true}}
- {key: none, rate_limit: {unit: second, requests_per_unit: 0}}
- {key: shadow, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: both, value: "*", share_threshold: true, rate_limit: {unit: second, requests_per_unit: 100}}
- key: team
  rate_limit: {unit: second, requests_per_unit: 100}
  descriptors: [{key: path, fallback: parent}]
- {key: flight, on_cache_failure: deny, rate_limit: {algorithm: concurrency, max_in_flight: 5, lease: 1m}}
- {key: open, on_cache_failure: allow, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: shut, on_cache_failure: deny, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: alone, on_cache_failure: local, rate_limit: {unit: second, requests_per_unit: 100}}
`;

/** The rules of a list of descriptors. */
export function listed(descriptors: string): Rules {
  return rulesOf({ "a.yaml": `domain: d\ndescriptors:\n${descriptors}` });
}

/** A hub that has run long enough, with what it says about usages. */
export class QuotaHubBed implements QuotaUsageSink {
  readonly clock = new FakeClock();
  readonly usages: (readonly [string, number, number, number])[] = [];
  readonly refusals: (readonly [string, string, string | undefined])[] = [];
  readonly hub: QuotaHub;

  constructor(options: Partial<QuotaHubOptions> = {}, settledMs = SETTLED_MS) {
    this.hub = new QuotaHub({ ...hubOptions(this.clock, QUOTA_RULES), usage: this, ...options });
    this.clock.advance(settledMs);
  }

  used({ match }: Bucket, allowed: number, denied: number, shadow: number): void {
    this.usages.push([match?.limit.rule?.fullKey ?? "", allowed, denied, Math.round(shadow)]);
  }

  refused(reason: string, { domain }: { readonly domain: string }, bucket: Bucket | undefined): void {
    this.refusals.push([reason, domain, bucket?.match?.limit.rule?.fullKey]);
  }

  envoy(name?: string): QuotaEnvoy {
    const envoy = new QuotaEnvoy({ clock: this.clock, name, domain: "d", delay: () => 0 });
    envoy.connect(this.hub);
    return envoy;
  }

  /** Time passes, with turns for what waits for answers. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(100, left));
      for (let turn = 0; turn < 12; turn++) await Promise.resolve();
    }
  }
}

/** An assignment in short. */
export function short(assignment: Assignment | undefined): string | undefined {
  if (assignment?.kind !== "tokens") return assignment?.kind;
  const { maxTokens, tokens, fillSeconds, fillNanos, seconds } = assignment;
  return `${maxTokens} ${tokens}/${fillSeconds}.${fillNanos} ${seconds}`;
}

/** A stream of a client whose messages are noted, and whose connection confirms what arrived when a test says so. */
export function openNoted(
  bed: QuotaHubBed,
  name: string,
  shown: string[],
  confirms: (() => void)[] | undefined,
) {
  const stream = bed.hub.open({
    name,
    actions: {
      send: (_id, assignment) => shown.push(`${name} ${short(assignment)}`),
      flush: () => true,
      confirm: (arrived) => confirms !== undefined && confirms.push(arrived) > 0,
    },
    end: () => {},
  });
  const pairs = () => [{ key: "k", value: "v" }];
  return async (allowed: number, elapsedSeconds = 0) => {
    await stream.report({ domain: "d", usages: [{ id: "b", pairs, allowed, denied: 0, elapsedSeconds }] });
  };
}
