import type { Refusal } from "./problem.ts";
import type { CallHandler } from "./router.ts";

const REFUSAL: Refusal = {
  kind: "unknown_host",
  field: "host",
  reason: "the host is not one of DEBUG_ALLOWED_HOSTS",
};

/**
 * Wraps handlers so that a request addressed to a host that is not allowed gets 403: a page whose own name was made
 * to resolve to this address (DNS rebinding) is of the same site to a browser, and only its name gives it away.
 * Loopback names and IP addresses are always allowed, since no such page can have them.
 */
export function hostGuard(allowed: readonly string[]): (handle: CallHandler) => CallHandler {
  const names = new Set(allowed.map(normalName));
  return (handle) => (call) => {
    const name = normalName(call.url.hostname);
    return isLoopbackOrAddress(name) || names.has(name) ? handle(call) : call.refuse(REFUSAL);
  };
}

function isLoopbackOrAddress(name: string): boolean {
  // In a URL that was parsed these two forms are addresses, and only they.
  const isAddress = name.startsWith("[") || /^[\d.]+$/.test(name);
  return name === "localhost" || name.endsWith(".localhost") || isAddress;
}

function normalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
