const DENO_JSON = new URL("../deno.json", import.meta.url);

/** The flags of `deno run` that the serve task has, such as `--allow-net`, in their order. */
export function serveFlags(): string[] {
  const { tasks } = JSON.parse(Deno.readTextFileSync(DENO_JSON));
  return String(tasks.serve).split(" ").filter((word) => word.startsWith("--"));
}
