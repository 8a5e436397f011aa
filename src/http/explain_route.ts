import { type Descriptor, parseDescriptorText, type RateLimitRequest } from "../ratelimit/request.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import type { Explained } from "../ratelimit/explain.ts";
import type { Plan } from "../ratelimit/plan.ts";
import type { DebugRoute } from "./debug.ts";
import { unauthorizedRefusal } from "./bearer_token.ts";
import { debugRightOf, type DebugTokens } from "./debug_right.ts";
import type { Refusal } from "./problem.ts";
import type { Call } from "./router.ts";

/** What explains, and looks at counters; both throw what a decision throws. */
export interface Explainer {
  explain(request: RateLimitRequest): Explained;
  /** By descriptor; absent where nothing is counted. */
  used(plan: Plan): Promise<(number | undefined)[]>;
}

/** What the route works with. */
export interface ExplainRouteOptions extends DebugTokens {
  readonly explainer: Explainer;
}

/**
 * `GET /explain?domain=…&descriptors=k=v,…` of the debug port. There is one `Authorization`, so the route looks
 * at it by itself: either token lets in where the port has one, and only that of the administration
 * shows live counts.
 */
export function explainRoute(options: ExplainRouteOptions): DebugRoute {
  return {
    path: "/explain",
    methods: ["GET", "HEAD"],
    help: "which rule decides, ?domain=NAME&descriptors=KEY=VALUE,…; ADMIN_TOKEN shows the counts",
    open: true,
    handle: (call) => answer(call, options),
  };
}

async function answer(call: Call, options: ExplainRouteOptions): Promise<Response> {
  const right = debugRightOf(call, options);
  if (right === "none") return call.refuse(unauthorizedRefusal(call));
  const request = requestOf(call.url.searchParams);
  if ("kind" in request) return call.refuse(request);
  try {
    const { explanation, plan } = options.explainer.explain(request);
    const shown = right === "administers"
      ? await countsOf(plan, options.explainer)
      : { counts: HIDDEN, used: [] };
    const descriptors = explanation.descriptors.map((descriptor, index) => {
      const used = shown.used[index];
      if (used === undefined) return descriptor;
      return { ...descriptor, used, remaining: Math.max(0, (descriptor.limit?.requestsPerUnit ?? 0) - used) };
    });
    const body = JSON.stringify({ ...explanation, counts: shown.counts, descriptors }, undefined, 2);
    return new Response(`${body}\n`, { headers: { "content-type": "application/json" } });
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    return call.refuse(refusal);
  }
}

const HIDDEN = "not shown: they want ADMIN_TOKEN as the bearer token";

/** Counts that cannot be had do not keep the walk away: it is wanted most when something is wrong. */
async function countsOf(
  plan: Plan,
  explainer: Explainer,
): Promise<{ counts: string; used: readonly (number | undefined)[] }> {
  try {
    return { used: await explainer.used(plan), counts: "shown" };
  } catch (error) {
    if (!(error instanceof CacheError || error instanceof InvalidRequestError)) throw error;
    return { used: [], counts: `not shown: ${error.message}` };
  }
}

function requestOf(query: URLSearchParams): RateLimitRequest | Refusal {
  const unknown = [...query.keys()].find((name) => name !== "domain" && name !== "descriptors");
  if (unknown !== undefined) return invalid(unknown, "only domain and descriptors are known");
  const [domain = "", ...more] = query.getAll("domain");
  if (domain === "" || more.length > 0) return invalid("domain", "must be given once, and not be empty");
  const lists = query.getAll("descriptors");
  if (lists.length === 0) return invalid("descriptors", "must be given, such as descriptors=key=value");
  const descriptors: Descriptor[] = [];
  for (const list of lists) {
    const entries = parseDescriptorText(list);
    if (typeof entries === "string") return invalid("descriptors", entries);
    descriptors.push({ entries });
  }
  return { domain, descriptors, hitsAddend: 1 };
}

function invalid(field: string, reason: string): Refusal {
  return { kind: "invalid", field, reason, detail: `Cannot read "${field}": ${reason}` };
}

function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof InvalidRequestError) {
    const { field, message } = error;
    return { kind: "invalid", ...(field === undefined ? {} : { field }), reason: message };
  }
  return error instanceof NoConfigurationError
    ? { kind: "no_configuration", reason: error.message }
    : undefined;
}
