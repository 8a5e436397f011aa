import process from "node:process";
import { printResult } from "./measuring_script.ts";
import { LoadRecord, type LoadResult } from "../../src/load/load_record.ts";
import { pace } from "../../src/load/pace.ts";
import { systemClock } from "../../src/base/clock.ts";
import { openKvSession } from "../../src/cache/kv/greeting.ts";
import { Credential } from "../../src/net/credential.ts";

/** Different keys, taken in turn. */
const KEYS = 10_000;
const TIMEOUT_MS = 5_000;

/** Options of a paced kv. */
interface PacedKvOptions {
  readonly port: number;
  readonly perSecond: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** Sends INCRBY at a constant rate on a bare connection, and checks that each answer is a count. */
async function runPacedKv(options: PacedKvOptions): Promise<LoadResult> {
  const { port, perSecond, warmUpSeconds, seconds } = options;
  const connection = await openKvSession(
    {
      locate: () => Promise.resolve({ target: { host: "127.0.0.1", port } }),
      tls: undefined,
      timeoutMs: TIMEOUT_MS,
      clock: systemClock,
      login: new Credential({ username: undefined, password: undefined }),
    },
    () => {},
    new AbortController().signal,
  );
  const begin = performance.now();
  const cpuBefore = process.cpuUsage();
  const record = new LoadRecord(begin + warmUpSeconds * 1_000);
  let index = 0;
  const answers: Promise<void>[] = [];
  await pace({
    perSecond,
    stopAt: begin + (warmUpSeconds + seconds) * 1_000,
    start(due) {
      record.begin(due);
      const answer = connection.command(["INCRBY", `bare_k${index++ % KEYS}`, "1"]).then(
        (count) =>
          Number(count) > 0 ? record.goodAnswer(due, performance.now()) : record.error(`count ${count}`),
        (error: unknown) => record.error(error instanceof Error ? error.message : String(error)),
      );
      answers.push(answer);
    },
  });
  await Promise.all(answers);
  connection.close("the bench has ended");
  const { user, system } = process.cpuUsage(cpuBefore);
  return record.result((user + system) / 1_000 / (performance.now() - begin));
}

if (import.meta.main) await printResult(runPacedKv);
