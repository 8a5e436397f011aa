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

/** The settings that decide which windows of a rule are counted together. */
interface WindowSettings {
  readonly BACKEND_TYPE: string | undefined;
  readonly KV_TYPE: string | undefined;
  readonly KV_PERSECOND: boolean;
  readonly CACHE_KEY_PREFIX: string;
  readonly STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: boolean;
}

/** Windows of one rule that are not counted together, as the checks of rules take them. */
interface SeparateWindows {
  readonly why: string;
  readonly ofFixedWindows: boolean;
  readonly perSecond: boolean;
}

/** Which lists of windows these settings cannot count together; undefined if they can count all. */
export function separateWindows(settings: WindowSettings): SeparateWindows | undefined {
  const ofFixedWindows = settings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT;
  const reason = ofFixedWindows
    ? "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"
    : "an algorithm other than fixed_window";
  if (settings.BACKEND_TYPE === "mc") {
    const why =
      `with ${reason}, a hit counts in all windows or in none, which memcached (BACKEND_TYPE=mc) cannot do; ` +
      "use rate_limit with one window, or set BACKEND_TYPE to kv or memory";
    // Other algorithms are reported at their own place.
    return ofFixedWindows ? { why, ofFixedWindows, perSecond: false } : undefined;
  }
  if (settings.BACKEND_TYPE !== "kv") return undefined;
  // The first braces of a key count, and empty ones are no tag.
  if (settings.KV_TYPE?.toLowerCase() === "cluster" && /^[^{]*\{\}/.test(settings.CACHE_KEY_PREFIX)) {
    const why =
      `with ${reason}, a hit counts in all windows or in none, but with the '{}' of CACHE_KEY_PREFIX a cluster has ` +
      "them on several nodes; use another prefix, two rules, or fixed windows";
    return { why, ofFixedWindows, perSecond: false };
  }
  if (!settings.KV_PERSECOND) return undefined;
  const why =
    `with ${reason}, a hit counts in all windows or in none, but KV_PERSECOND counts those per second on ` +
    "another server; use two rules, fixed windows, or KV_PERSECOND=false";
  return { why, ofFixedWindows, perSecond: true };
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
