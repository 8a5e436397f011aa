/**
 * The flags of `deno run` for Weir. `deno.json`, `scripts/weir` and `config/deploy/weir.sh` repeat them, because they
 * cannot import; a unit test compares them. A young generation of 4 MB stays in the cache of the processor, and its
 * collections are short while many rules are loaded. Paths are chosen by the operator, so reading and writing have no list.
 */
export const SERVE_FLAGS: readonly string[] = [
  "--unstable-no-legacy-abort",
  "--v8-flags=--no-allocation-site-pretenuring,--max-semi-space-size=4",
  "--no-prompt",
  "--allow-net",
  "--allow-env",
  "--allow-read",
  "--allow-write",
  "--allow-sys",
];
