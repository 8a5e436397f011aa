import { outputOf } from "../../tests/harness/child_process.ts";

/** Runs a script of this folder in its own process with these options; returns its result. */
export async function runScript<Result>(
  script: string,
  options: object,
  signal?: AbortSignal,
): Promise<Result> {
  const path = new URL(script, import.meta.url).pathname;
  return JSON.parse(await outputOf(Deno.execPath(), ["run", "-A", path, JSON.stringify(options)], signal));
}

/** The main function of such a script: reads its options and prints the result. */
export async function printResult<Options>(measure: (options: Options) => unknown): Promise<void> {
  const result = await measure(JSON.parse(Deno.args[0] ?? "{}"));
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(result)}\n`));
}
