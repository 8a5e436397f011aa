import { type Ran, ran } from "../../harness/administration_fixture.ts";

/** A receiver that runs. */
interface Receiver {
  readonly url: string;
  /** The output so far. */
  readonly lines: readonly string[];
}

/** Runs `weir webhooks listen` on a free port while `use` does its work, then ends it. Answers what it came to. */
export async function receiving(
  args: readonly string[],
  use: (receiver: Receiver) => Promise<void>,
): Promise<Ran> {
  const lines: string[] = [];
  const stop = new AbortController();
  const bound = Promise.withResolvers<string>();
  const onLine = (line: string) => {
    lines.push(line);
    const url = /^Listening on (.+)$/.exec(line)?.[1];
    if (url !== undefined) bound.resolve(url);
  };
  const result = ran(["webhooks", "listen", "--port", "0", ...args], { stop: stop.signal, onLine });
  result.then(({ stderr }) => bound.reject(new Error(stderr)), bound.reject);
  try {
    await use({ url: await bound.promise, lines });
  } finally {
    stop.abort();
  }
  return await result;
}
