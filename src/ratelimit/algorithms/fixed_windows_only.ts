/** Why this back end counts no other algorithm than fixed windows, and what to do; undefined if it does. */
export function fixedWindowsOnly(backend: string | undefined): string | undefined {
  if (backend === "memory") return undefined;
  const cache = backend === "mc" ? "memcached (BACKEND_TYPE=mc)" : "the key-value cache";
  return `cannot be counted in ${cache}; remove it for a fixed window, or set BACKEND_TYPE=memory`;
}
