/** Why this back end counts no other algorithm than fixed windows, and what to do; undefined if it does. */
export function fixedWindowsOnly(backend: string | undefined): string | undefined {
  if (backend !== "mc") return undefined;
  return "cannot be counted in memcached (BACKEND_TYPE=mc); remove it for a fixed window, " +
    "or set BACKEND_TYPE to kv or memory";
}
