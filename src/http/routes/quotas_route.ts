import { shownText } from "../../base/byte_text.ts";
import { MAX_SHOWN, type QuotaFilter } from "../../quota/quota_view.ts";
import { parseDescriptorText } from "../../ratelimit/request.ts";
import { invalidParameter, type Refusal, refusalOf } from "../server/problem.ts";
import { debugRightOf, type DebugTokens, unauthorizedRefusal } from "./bearer_token.ts";
import type { DebugRoute } from "./debug.ts";

/** Options of `quotasRoute`. */
interface QuotasRouteOptions extends DebugTokens {
  readonly quotas: (filter: QuotaFilter) => Promise<object>;
}

const NAMES = ["domain", "bucket", "text", "limit"];

/**
 * `GET /quotas?domain=…&bucket=k=v,…&text=…&limit=…` of the debug port. Checks the token itself: that of the port and those of
 * administrators open it.
 */
export function quotasRoute(options: QuotasRouteOptions): DebugRoute {
  return {
    path: "/quotas",
    methods: ["GET", "HEAD"],
    help:
      "buckets of quotas with their limits and clients, ?domain=NAME&bucket=KEY=VALUE,…&text=PART&limit=N",
    open: true,
    handle: async (call) => {
      if (debugRightOf(call, options) === "none") return call.refuse(unauthorizedRefusal(call));
      const query = queryOf(call.url.searchParams);
      if ("kind" in query) return call.refuse(query);
      try {
        const body = JSON.stringify(await options.quotas(query));
        return new Response(`${body}\n`, { headers: { "content-type": "application/json" } });
      } catch (error) {
        return call.refuse(refusalOf(error));
      }
    },
  };
}

function queryOf(parameters: URLSearchParams): QuotaFilter | Refusal {
  const unknown = [...parameters.keys()].find((name) => !NAMES.includes(name));
  if (unknown !== undefined) {
    return invalidParameter(shownText(unknown), `only ${NAMES.join(", ")} are known`);
  }
  const repeated = NAMES.find((name) => parameters.getAll(name).length > 1);
  if (repeated !== undefined) return invalidParameter(repeated, "must be given once");
  const list = parameters.get("bucket");
  const pairs = list === null ? undefined : parseDescriptorText(list);
  if (typeof pairs === "string") return invalidParameter("bucket", shownText(pairs));
  const limit = parameters.get("limit") ?? String(MAX_SHOWN.buckets);
  if (!/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > MAX_SHOWN.buckets) {
    return invalidParameter("limit", `must be a whole number from 1 to ${MAX_SHOWN.buckets}`);
  }
  const [domain, text] = ["domain", "text"].map((name) => parameters.get(name) ?? undefined);
  return { domain, pairs, text, limit: Number(limit) };
}
