/**
 * Kills Weir again and again while it delivers events and carries out executions, and looks whether anything was lost
 * or doubled. Prints the seed, so that a run can be repeated. Exit code 1 when something was not so.
 */
import { killWhileDelivering } from "../tests/support/webhook_kill_loop.ts";
import { killWhileExecuting } from "../tests/support/workflow_kill_loop.ts";
import type { KillReport } from "../tests/support/webhook_kill_rounds.ts";
import { readWebhookSoakOptions, type WebhookSoakOptions } from "./soak/webhook_options.ts";

/** Runs what is asked for, prints what happened, and answers whether all was as it has to be. */
export async function soakWebhooks(options: WebhookSoakOptions): Promise<boolean> {
  const { events, eventKills, executions, executionKills, seed } = options;
  write(Deno.stdout, `seed ${seed}`);
  const say = (line: string) => write(Deno.stderr, line);
  let isGood = true;
  if (events > 0) {
    const report = await killWhileDelivering({ events, kills: eventKills, seed, say });
    isGood = tell("events", report) && isGood;
  }
  if (executions > 0) {
    const report = await killWhileExecuting({ executions, kills: executionKills, seed, say });
    isGood = tell("executions", report) && isGood;
  }
  return isGood;
}

function tell(what: string, { problems, tookMs, killsAt, ...counts }: KillReport): boolean {
  write(Deno.stdout, `${what}, ${Math.round(tookMs / 1_000)} s:`);
  for (const [name, count] of Object.entries({ ...counts, ...prefixed(killsAt) })) {
    write(Deno.stdout, `  ${name}: ${count}`);
  }
  for (const problem of problems) write(Deno.stdout, `  not good: ${problem}`);
  return problems.length === 0;
}

function prefixed(killsAt: KillReport["killsAt"]): Record<string, number> {
  return Object.fromEntries(Object.entries(killsAt).map(([at, count]) => [`killed ${at}`, count]));
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
