/** Why a service without this store sends no events of rules, and what to do; undefined if it has a store. */
export function eventsUnsent(webhookStore: string | undefined): string | undefined {
  if (webhookStore !== undefined && webhookStore !== "") return undefined;
  return "has no effect without WEBHOOK_STORE, which stores and delivers events; set it, or remove events";
}
