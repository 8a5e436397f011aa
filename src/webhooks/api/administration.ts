import { deliveryRoutes } from "./deliveries.ts";
import { endpointRoutes } from "./endpoints.ts";
import { eventRoutes } from "./events.ts";
import { executionRoutes } from "./executions.ts";
import type { AdministrationParts, AdministrationRoute } from "./route.ts";
import { triggerRoutes } from "./triggers.ts";
import { jsonObjectOf } from "./json_body.ts";
import { notFound, WebhookRefusal } from "./problem.ts";
import type { AdministrationCall, WebhookAnswer } from "./calls.ts";

/** Everything about records over HTTP. Refusals are thrown as `WebhookRefusal`. */
export class Administration {
  readonly #routes: readonly { readonly route: AdministrationRoute; readonly segments: readonly string[] }[];

  constructor(parts: AdministrationParts) {
    this.#routes = [
      ...endpointRoutes(parts),
      ...triggerRoutes(parts),
      ...eventRoutes(parts),
      ...deliveryRoutes(parts),
      ...executionRoutes(parts),
    ].map((route) => ({ route, segments: route.pattern.split("/") }));
  }

  /** Answers one call. */
  async answer({ method, path, query, body }: AdministrationCall): Promise<WebhookAnswer> {
    const segments = path.split("/");
    const found = this.#routes.filter((one) => isMatch(one.segments, segments));
    if (found.length === 0) throw notFound("this path");
    const match = found.find(({ route }) => route.method === method);
    if (match === undefined) throw wrongMethod(found.map(({ route }) => route.method));
    const ids = segments.filter((_, index) => match.segments[index]?.startsWith(":"));
    return await match.route.handle({
      ids,
      query: new URLSearchParams(query),
      object: (options) => body === undefined && options?.optional === true ? {} : jsonObjectOf(body ?? ""),
    });
  }
}

function isMatch(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.length === segments.length &&
    pattern.every((part, index) => part.startsWith(":") ? segments[index] !== "" : part === segments[index]);
}

function wrongMethod(methods: readonly string[]): WebhookRefusal {
  const allow = methods.join(", ");
  const detail = `Cannot answer this method: ${allow} would be right`;
  return new WebhookRefusal({ status: 405, code: "method_not_allowed", detail, headers: { allow } });
}
