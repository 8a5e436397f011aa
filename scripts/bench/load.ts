import process from "node:process";
import type { Expectation } from "../../tests/harness/load/answer.ts";
import { CallSource } from "../../tests/harness/load/call_source.ts";
import { LoadConnection } from "../../tests/harness/load/load_connection.ts";
import { type LoadOptions, readLoadOptions } from "./load_options.ts";
import { LoadRecord, type LoadResult } from "../../tests/harness/load/load_record.ts";
import { pace } from "./pace.ts";
import { RULES_OF } from "../../tests/harness/load/rate_limit_message.ts";

/** How long the last answers may take after the time is over. */
const GRACE_MS = 10_000;

/** Makes calls until the time or the number is reached, waits for every answer and checks each. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const source = new CallSource(options);
  const ca = options.caFile === undefined ? undefined : await Deno.readTextFile(options.caFile);
  const { host, port, path, inFlight, expect, batch, count, perSecond } = options;
  const expected: Expectation = { code: expect, descriptors: batch * RULES_OF[options.load].length, count };
  const begin = performance.now();
  const cpuBefore = process.cpuUsage();
  const measureFrom = begin + options.warmUpSeconds * 1_000;
  const stopAt = measureFrom + options.seconds * 1_000;
  const record = new LoadRecord(options.warmUpSeconds === 0 ? 0 : measureFrom);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), stopAt - begin + GRACE_MS);
  const nextCall = (now: number) =>
    source.taken >= options.calls || now >= stopAt ? undefined : source.next();
  const connections = Array.from({ length: options.connections }, () =>
    new LoadConnection({
      ...{ host, port, ca, path, inFlight, expected, record, deadline: deadline.signal },
      nextCall: perSecond === undefined ? nextCall : undefined,
    }));
  if (perSecond !== undefined) await paced(connections, { source, perSecond, stopAt });
  await Promise.all(connections.map(({ closed }) => closed));
  clearTimeout(timer);
  const { user, system } = process.cpuUsage(cpuBefore);
  return record.result((user + system) / 1_000 / (performance.now() - begin));
}

async function paced(connections: readonly LoadConnection[], options: {
  readonly source: CallSource;
  readonly perSecond: number;
  readonly stopAt: number;
}): Promise<void> {
  const { source, perSecond, stopAt } = options;
  await Promise.all(connections.map(({ ready }) => ready));
  await pace({
    perSecond,
    seconds: (stopAt - performance.now()) / 1_000,
    start: (due) => connections[source.taken % connections.length]?.offer(source.next(), due),
  });
  for (const connection of connections) connection.finish();
}

if (import.meta.main) {
  const result = await runLoad(readLoadOptions(Deno.args));
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(result)}\n`));
  Deno.exitCode = Object.keys(result.errors).length === 0 ? 0 : 1;
}
