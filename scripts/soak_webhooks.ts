/**
 * Kills Weir again and again while it delivers events and carries out executions, and looks whether anything was lost
 * or doubled; with `--store postgres` three of them on one database, which is killed and fails over as well. On a file it
 * also looks at a small workflow next to one that hangs, and at the memory that large inputs take. Prints the seed, so
 * that a run can be repeated. Exit code 1 when something was not so.
 */
import { readWebhookSoakOptions, type WebhookSoakOptions } from "./soak/webhook_options.ts";
import { RUN_PART, type SoakFindings } from "./soak/webhook_parts.ts";

/** Runs what is asked for, prints what happened, and answers whether all was as it has to be. */
export async function soakWebhooks(options: WebhookSoakOptions): Promise<boolean> {
  write(Deno.stdout, `seed ${options.seed}`);
  const say = (line: string) => write(Deno.stderr, line);
  let isGood = true;
  for (const part of options.parts) {
    const begin = performance.now();
    const findings = await RUN_PART[part](options, say);
    tell(part, performance.now() - begin, findings);
    isGood &&= findings.problems.length === 0;
  }
  return isGood;
}

function tell(part: string, tookMs: number, { problems, counts }: SoakFindings): void {
  write(Deno.stdout, `${part}, ${Math.round(tookMs / 1_000)} s:`);
  for (const [name, value] of Object.entries(counts)) write(Deno.stdout, `  ${name}: ${shown(value)}`);
  for (const problem of problems) write(Deno.stdout, `  not good: ${problem}`);
}

function shown(value: unknown): string {
  const numbers: readonly unknown[] = Array.isArray(value) ? value : [value];
  return numbers.map((one) => typeof one === "number" ? String(Math.round(10 * one) / 10) : String(one))
    .join(", ");
}

function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  output.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  try {
    Deno.exit(await soakWebhooks(readWebhookSoakOptions(Deno.args)) ? 0 : 1);
  } catch (error) {
    write(
      Deno.stderr,
      error instanceof Error ? `${error.message}\n${Deno.inspect(error.cause)}` : String(error),
    );
    Deno.exit(1);
  }
}
