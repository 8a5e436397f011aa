import { explainBucket } from "../quota/explain_bucket.ts";
import type { QuotaHub } from "../quota/quota_hub.ts";
import { mergedViews, type QuotaFilter, type QuotaView, type ShownBucket } from "../quota/quota_view.ts";
import type { RateLimitService } from "../ratelimit/decision/service.ts";
import { NoConfigurationError } from "../ratelimit/errors.ts";
import { type Entry, shownEntry } from "../ratelimit/request.ts";
import { shownText } from "../base/byte_text.ts";
import { quotasRefused } from "../settings/rule_support.ts";
import type { ServiceParts } from "./parts.ts";
import type { DecidingWorkers } from "./workers/deciding_workers.ts";

/** The buckets of all threads; serializable as JSON. */
interface AnsweredView extends QuotaView {
  /** Why some or all buckets are not shown; absent if nothing is missing. */
  readonly why?: string;
}

/** A bucket, with the reason if it has no clients. */
type PeekedBucket = ShownBucket & { readonly why?: string };

/** Shows the buckets of quotas of all threads. */
export class QuotaViews {
  readonly #parts: Pick<ServiceParts, "settings" | "stats">;
  readonly #service: Pick<RateLimitService, "rules">;
  readonly #workers: Pick<DecidingWorkers, "quotas"> | undefined;
  /** Of this thread; undefined until it listens. */
  own: Pick<QuotaHub, "snapshot"> | undefined;

  constructor(
    parts: Pick<ServiceParts, "settings" | "stats">,
    service: Pick<RateLimitService, "rules">,
    workers: Pick<DecidingWorkers, "quotas"> | undefined,
  ) {
    this.#parts = parts;
    this.#service = service;
    this.#workers = workers;
  }

  /** The buckets that a filter selects. */
  async list(filter: QuotaFilter): Promise<AnsweredView> {
    const { BACKEND_TYPE, WORKERS } = this.#parts.settings;
    const refused = quotasRefused(BACKEND_TYPE);
    if (refused !== undefined) return { buckets: 0, quotas: [], why: refused };
    if (this.own === undefined) return { buckets: 0, quotas: [], why: "the service is starting" };
    const [own, others] = await Promise.all([this.own.snapshot(filter), this.#workers?.quotas(filter) ?? []]);
    const view = mergedViews([own, ...others], filter.limit);
    const missing = WORKERS - 1 - others.length;
    return missing === 0
      ? view
      : { ...view, why: `${missing} of ${WORKERS} threads did not answer: their clients are missing` };
  }

  /** One bucket; by the rules alone if no client reports it. */
  async peek(domain: string, pairs: readonly Entry[]): Promise<PeekedBucket> {
    const { quotas: [found], why } = await this.list({ domain, pairs, limit: 1 });
    const { settings, stats } = this.#parts;
    if (found !== undefined) return why === undefined ? found : { ...found, why };
    const { rules } = this.#service;
    if (rules === undefined) throw new NoConfigurationError();
    const { rule, quota } = explainBucket(rules, { domain, pairs, shadowMode: settings.SHADOW_MODE });
    const surplus = stats.reader("counter", "ratelimit.quota.surplus_buckets")?.() ?? 0;
    const absent = surplus === 0
      ? "no client reports this bucket"
      : "no client reports this bucket, or it is above QUOTA_MAX_BUCKETS_PER_STREAM or QUOTA_MAX_BUCKETS, where " +
        `QUOTA_OVERFLOW=${settings.QUOTA_OVERFLOW} decides`;
    return {
      domain: shownText(domain),
      bucket: pairs.map(shownEntry),
      ...(rule === undefined ? {} : { rule: rule.name }),
      limit: quota,
      demand: 0,
      inForce: 0,
      clientCount: 0,
      clients: [],
      why: why ?? absent,
    };
  }
}
