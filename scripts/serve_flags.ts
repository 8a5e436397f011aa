const DENO_JSON = new URL("../deno.json", import.meta.url);

/**
 * The flags of `deno run` that the serve task has, such as `--allow-net`, in their order: the permissions of every
 * other way to run Weir are taken from there.
 */
export function serveFlags(denoJson: URL = DENO_JSON): string[] {
  const { tasks } = JSON.parse(Deno.readTextFileSync(denoJson));
  return String(tasks.serve).split(" ").filter((word) => word.startsWith("--"));
}
