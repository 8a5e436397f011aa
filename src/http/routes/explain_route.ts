import { shownText } from "../../base/byte_text.ts";
import { type Descriptor, parseDescriptorText, type RateLimitRequest } from "../../ratelimit/request.ts";
import { CacheError, InvalidRequestError } from "../../ratelimit/errors.ts";
import type { Explained } from "../../ratelimit/forecast/explain.ts";
import type { Usage } from "../../ratelimit/forecast/live_counters.ts";
import type { Plan } from "../../ratelimit/decision/plan.ts";
import type { DebugRoute } from "./debug.ts";
import { debugRightOf, type DebugTokens, unauthorizedRefusal } from "./bearer_token.ts";
import { invalidParameter, type Refusal, refusalOf } from "../server/problem.ts";
import { decodeText } from "../../wire/text.ts";
import type { Call } from "../server/router.ts";

/** Explains decisions and reads their counters; both throw what a decision throws. */
interface Explainer {
  explain(request: RateLimitRequest): Explained;
  /** By descriptor; absent where nothing is counted. */
  usage(plan: Plan): Promise<(Usage | undefined)[]>;
}

/** Options of `explainRoute`. */
export interface ExplainRouteOptions extends DebugTokens {
  readonly explainer: Explainer;
}

/**
 * `GET /explain?domain=…&descriptors=k=v,…` of the debug port. Checks the token itself: that of the port and those of
 * administrators open it, and only the latter show live counts.
 */
export function explainRoute(options: ExplainRouteOptions): DebugRoute {
  return {
    path: "/explain",
    methods: ["GET", "HEAD"],
    help:
      "which rule decides, ?domain=NAME&descriptors=KEY=VALUE,…; an administration token shows the counts",
    open: true,
    handle: (call) => answer(call, options),
  };
}

async function answer(call: Call, options: ExplainRouteOptions): Promise<Response> {
  const right = debugRightOf(call, options);
  if (right === "none") return call.refuse(unauthorizedRefusal(call));
  const request = requestOf(parametersOf(call.url));
  if ("kind" in request) return call.refuse(request);
  try {
    const { explanation, plan } = options.explainer.explain(request);
    const shown = right === "counters"
      ? await countsOf(plan, options.explainer)
      : { counts: HIDDEN, usage: [] };
    const descriptors = explanation.descriptors.map((descriptor, index) => {
      const { windows: usages, ...usage } = shown.usage[index] ?? {};
      const windows = descriptor.windows?.map((window, at) => ({ ...window, ...usages?.[at] }));
      return { ...descriptor, ...usage, ...(windows === undefined ? {} : { windows }) };
    });
    const body = JSON.stringify({ ...explanation, counts: shown.counts, descriptors }, undefined, 2);
    return new Response(`${body}\n`, { headers: { "content-type": "application/json" } });
  } catch (error) {
    return call.refuse(refusalOf(error));
  }
}

const HIDDEN = "not shown: they require an administration token";

/** The explanation is shown without counts that cannot be read: it is needed most when something is wrong. */
async function countsOf(
  plan: Plan,
  explainer: Explainer,
): Promise<{ counts: string; usage: readonly (Usage | undefined)[] }> {
  try {
    return { usage: await explainer.usage(plan), counts: "shown" };
  } catch (error) {
    if (!(error instanceof CacheError || error instanceof InvalidRequestError)) throw error;
    return { usage: [], counts: `not shown: ${error.message}` };
  }
}

/** The parameters of a URL, whose bytes need not be UTF-8: `URLSearchParams` would merge them. */
function parametersOf({ search }: URL): (readonly [name: string, value: string])[] {
  return search.slice(1).split("&").filter((pair) => pair !== "").map((pair) => {
    const [name = "", ...value] = pair.replaceAll("+", " ").split("=");
    return [percentDecoded(name), percentDecoded(value.join("="))];
  });
}

/** A URL is ASCII. */
function percentDecoded(text: string): string {
  const bytes = text.replace(
    /%([\da-f]{2})/gi,
    (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return decodeText(Uint8Array.from(bytes, (char) => char.charCodeAt(0)));
}

function requestOf(query: ReturnType<typeof parametersOf>): RateLimitRequest | Refusal {
  const unknown = query.map(([name]) => name).find((name) => name !== "domain" && name !== "descriptors");
  if (unknown !== undefined) {
    return invalidParameter(shownText(unknown), "only domain and descriptors are known");
  }
  const valuesOf = (wanted: string) => query.flatMap(([name, value]) => name === wanted ? [value] : []);
  const [domain = "", ...more] = valuesOf("domain");
  if (domain === "" || more.length > 0) {
    return invalidParameter("domain", "must be given once, and not be empty");
  }
  const lists = valuesOf("descriptors");
  if (lists.length === 0) {
    return invalidParameter("descriptors", "must be given, such as descriptors=key=value");
  }
  const descriptors: Descriptor[] = [];
  for (const list of lists) {
    const entries = parseDescriptorText(list);
    if (typeof entries === "string") return invalidParameter("descriptors", shownText(entries));
    descriptors.push({ entries });
  }
  return { domain, descriptors, hitsAddend: 1 };
}
