import { benchCalls, RULES_OF } from "../../tests/harness/bench_rules.ts";
import { messageCheck } from "../../tests/harness/bench_answer.ts";
import type { LoadResult } from "../../src/load/load_record.ts";
import { runLoad } from "../../src/load/run_load.ts";
import { type LoadOptions, readLoadOptions } from "./load_options.ts";

/** Makes the calls of the bench, and checks each answer. */
export async function runBenchLoad(options: LoadOptions): Promise<LoadResult> {
  const { host, port, caFile, expect, batch, count, load } = options;
  const tls = caFile === undefined ? undefined : { ca: await Deno.readTextFile(caFile) };
  const { result } = await runLoad({
    ...options,
    peer: { address: { host, port }, tls },
    source: benchCalls(options),
    checkMessage: messageCheck({ code: expect, descriptors: batch * RULES_OF[load].length, count }),
  });
  return result;
}

if (import.meta.main) {
  const result = await runBenchLoad(readLoadOptions(Deno.args));
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(result)}\n`));
  Deno.exitCode = Object.keys(result.errors).length === 0 ? 0 : 1;
}
