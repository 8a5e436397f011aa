import type { OpenApiService } from "../../harness/openapi_service.ts";

/** A body that is too long for every operation. */
export const LONG = `{"data":"${"x".repeat(1_048_576)}"}`;
const SHOP = (key: string, value: string) => ({
  domain: "shop",
  descriptors: [{ entries: [{ key, value }] }],
});

/** Calls the operations of rate limit decisions and counters. */
export async function decisions(service: OpenApiService): Promise<void> {
  await service.call("getHealth");
  await service.call("getLiveness");
  await service.call("getOpenApi");
  const ask = SHOP("account", "ann");
  await service.call("shouldRateLimit", { body: ask });
  await service.call("shouldRateLimit", { body: SHOP("free", "x") });
  await service.call("shouldRateLimit", { body: SHOP("unknown", "x") });
  await service.call("peekCounters", { body: ask });
  await service.call("peekCounters", {
    body: { ...ask, descriptors: [...ask.descriptors, ...SHOP("free", "x").descriptors] },
  });
  await service.call("resetCounters", { body: ask });
  const limit = { requestsPerUnit: "0", unit: "HOUR" };
  const own = { domain: "shop", descriptors: [{ entries: [{ key: "a", value: "b" }], limit }] };
  await service.call("shouldRateLimit", { status: 429, body: own });
  await service.call("resetCounters", { body: own });
  await service.call("shouldRateLimit", { status: 400, body: { domain: "" } });
  await service.call("shouldRateLimit", { status: 413, body: LONG });
}

/** Calls the operations of the debug port. */
export async function debugPort(service: OpenApiService): Promise<void> {
  const open =
    "listDebugPaths getRules getStatistics getSettings getQuotas listProfiles getHeapProfile getMemoryProfile";
  for (const id of open.split(" ")) await service.call(id, { token: "" });
  const query = "domain=shop&descriptors=account=ann&descriptors=free=x&descriptors=unknown=x";
  await service.call("explainDecision", { query });
  await service.call("explainDecision", { query, token: "" });
  await service.call("explainDecision", { query: "domain=none&descriptors=a=b" });
  await service.call("explainDecision", { status: 400, query: "domain=shop" });
  await service.call("recordCpuProfile", { token: "", query: "seconds=1" });
  await service.call("recordCpuProfile", { token: "", status: 400, query: "seconds=0" });
}
