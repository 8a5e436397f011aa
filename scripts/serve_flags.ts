/**
 * The flags of `deno run` for Weir. `deno.json`, `scripts/weir` and `config/deploy/weir.sh` repeat them, because they
 * cannot import; a unit test compares them. Paths are chosen by the operator, so reading and writing have no list.
 */
export const SERVE_FLAGS: readonly string[] = [
  "--unstable-no-legacy-abort",
  "--v8-flags=--no-allocation-site-pretenuring",
  "--no-prompt",
  "--allow-net",
  "--allow-env",
  "--allow-read",
  "--allow-write",
  "--allow-sys",
];
