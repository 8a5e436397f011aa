/** Why a domain has one file or resource only, and what to do; undefined if it may have several. */
export function oneSourcePerDomain(mergeDomains: boolean): string | undefined {
  return mergeDomains ? undefined : "MERGE_DOMAIN_CONFIG=true would allow that";
}

/** Why this back end counts no other algorithm than fixed windows, and what to do; undefined if it does. */
export function fixedWindowsOnly(backend: string | undefined): string | undefined {
  if (backend !== "mc") return undefined;
  return "cannot be counted in memcached (BACKEND_TYPE=mc); remove it for a fixed window, " +
    "or set BACKEND_TYPE to kv or memory";
}

/** Why this back end has no quotas that clients enforce, and what to do; undefined if it does. */
export function quotasRefused(backend: string | undefined): string | undefined {
  if (backend !== "mc") return undefined;
  return "quotas require BACKEND_TYPE=kv or memory: memcached cannot divide a limit among instances";
}

/** Why a service without this store sends no events of rules, and what to do; undefined if it has a store. */
export function eventsUnsent(webhookStore: string | undefined): string | undefined {
  if (webhookStore !== undefined && webhookStore !== "") return undefined;
  return "has no effect without WEBHOOK_STORE, which stores and delivers events; set it, or remove events";
}
