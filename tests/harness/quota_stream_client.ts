import { QUOTA_PATH } from "../../src/wire/rlqs.ts";
import type { GrpcClient } from "./grpc_client.ts";
import { loadProtoRoot } from "./proto_root.ts";

const PACKAGE = "envoy.service.rate_limit_quota.v3";
const root = loadProtoRoot();
const REPORTS = root.lookupType(`${PACKAGE}.RateLimitQuotaUsageReports`);
const RESPONSE = root.lookupType(`${PACKAGE}.RateLimitQuotaResponse`);

/** The use of a bucket since the last report. */
interface Usage {
  readonly bucket: Readonly<Record<string, string>>;
  readonly allowed?: number;
  readonly denied?: number;
  readonly elapsedSeconds?: number;
}

/** A client of quotas that reports what a test says, with another encoder than the service. */
export class QuotaStreamClient {
  /** The last quota of each bucket as text: `allow 15`, `deny 15`, `5/1 of 5 15` or `abandon`. */
  readonly quotas: Record<string, string> = {};
  /** Every quota, in order. */
  readonly received: string[] = [];
  readonly #call: ReturnType<GrpcClient["openBidi"]>;

  constructor(client: GrpcClient, headers: Readonly<Record<string, string>> = {}) {
    this.#call = client.openBidi(QUOTA_PATH, (message) => this.#take(message), headers);
  }

  /** The status at the end of the stream. */
  get answer(): ReturnType<GrpcClient["openBidi"]>["answer"] {
    return this.#call.answer;
  }

  report(domain: string, ...usages: readonly Usage[]): void {
    const message = {
      domain,
      bucket_quota_usages: usages.map(({ bucket, allowed = 0, denied = 0, elapsedSeconds = 0 }) => ({
        bucket_id: { bucket },
        time_elapsed: { seconds: elapsedSeconds },
        num_requests_allowed: allowed,
        num_requests_denied: denied,
      })),
    };
    this.send(REPORTS.encode(REPORTS.fromObject(message)).finish());
  }

  /** Sends bytes as a message. */
  send(message: Uint8Array): void {
    this.#call.send(message);
  }

  cancel(): void {
    this.#call.cancel();
  }

  #take(message: Uint8Array): void {
    const read = RESPONSE.toObject(RESPONSE.decode(message), {
      longs: Number,
      enums: String,
      defaults: true,
    });
    for (const action of (read as { readonly bucket_action: readonly WireAction[] }).bucket_action) {
      const id = Object.entries(action.bucket_id.bucket).map((pair) => pair.join("=")).sort().join(",");
      const text = textOf(action);
      this.quotas[id] = text;
      this.received.push(`${id}: ${text}`);
    }
  }
}

interface WireAction {
  readonly bucket_id: { readonly bucket: Readonly<Record<string, string>> };
  readonly quota_assignment_action?: {
    readonly assignment_time_to_live: { readonly seconds: number };
    readonly rate_limit_strategy: {
      readonly blanket_rule?: "ALLOW_ALL" | "DENY_ALL";
      readonly token_bucket?: {
        readonly max_tokens: number;
        readonly tokens_per_fill: { readonly value: number };
        readonly fill_interval: { readonly seconds: number };
      };
    };
  };
}

function textOf({ quota_assignment_action: action }: WireAction): string {
  if (action === undefined || action === null) return "abandon";
  const { assignment_time_to_live: { seconds }, rate_limit_strategy: strategy } = action;
  const bucket = strategy.token_bucket;
  if (bucket === undefined || bucket === null) {
    return `${strategy.blanket_rule === "DENY_ALL" ? "deny" : "allow"} ${seconds}`;
  }
  const { max_tokens, tokens_per_fill, fill_interval } = bucket;
  return `${tokens_per_fill.value}/${fill_interval.seconds} of ${max_tokens} ${seconds}`;
}
