import { Client, Post } from "../../src/rest/mod.ts";
import { ChildProcess } from "../../tests/harness/child_process.ts";
import { printResult } from "./measuring_script.ts";
import { median } from "../../tests/harness/percentile.ts";

/** Calls of one measurement by how many run at the same time; with its like it makes a pair that a slow moment hits as one. */
const CALLS: readonly (readonly [parallel: number, calls: number])[] = [[1, 400], [100, 1_500]];
/** Pairs before those that count, so that everything is compiled. */
const WARM_UP = 4;
const HEADERS = { authorization: "Bearer KEY", "content-type": "application/json" };
const BODY = JSON.stringify({ customer: "c-1", items: [{ id: 1, count: 2 }] });
const ANSWER = JSON.stringify({ id: "0f8fad5b", accepted: true });

/** Microseconds of a call by bare `fetch` and by `send`, and the median of the ratios of each pair. */
export interface ClientTime {
  readonly parallel: number;
  readonly fetchUs: number;
  readonly sendUs: number;
  readonly ratio: number;
}

/** Sends the same request by bare `fetch` and by `send` to a server in its own process, in turn. */
async function clientTimes(
  { repetitions }: { readonly repetitions: number },
): Promise<ClientTime[]> {
  const script = new URL(import.meta.url).pathname;
  await using server = new ChildProcess(Deno.execPath(), { args: ["run", "-A", script, "--serve"] });
  const { port } = await server.find({ port: /^port (\d+)$/ });
  const url = `http://127.0.0.1:${port}/orders`;
  const client = new Client();
  const byFetch = async () => {
    const response = await fetch(url, { method: "POST", headers: HEADERS, body: BODY });
    checkAnswer(response.status, await response.text());
  };
  const bySend = async () => {
    const response = await client.send({ method: Post, baseURL: url, headers: HEADERS, body: BODY });
    checkAnswer(response.statusCode, response.body);
  };
  const times: ClientTime[] = [];
  for (const [parallel, calls] of CALLS) {
    const pairs: { fetchUs: number; sendUs: number }[] = [];
    for (let number = -WARM_UP; number < repetitions; number++) {
      // The first of the two finds the state that the other one left.
      const isFetchFirst = number % 2 === 0;
      const first = await timeOf(isFetchFirst ? byFetch : bySend, parallel, calls);
      const second = await timeOf(isFetchFirst ? bySend : byFetch, parallel, calls);
      const pair = isFetchFirst ? { fetchUs: first, sendUs: second } : { fetchUs: second, sendUs: first };
      if (number >= 0) pairs.push(pair);
    }
    times.push({
      parallel,
      fetchUs: median(pairs.map(({ fetchUs }) => fetchUs)),
      sendUs: median(pairs.map(({ sendUs }) => sendUs)),
      ratio: median(pairs.map(({ fetchUs, sendUs }) => sendUs / fetchUs)),
    });
  }
  return times;
}

/** Microseconds a call. */
async function timeOf(call: () => Promise<void>, parallel: number, calls: number): Promise<number> {
  let left = calls;
  const work = async () => {
    while (left-- > 0) await call();
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: parallel }, work));
  return (performance.now() - begin) * 1e3 / calls;
}

function checkAnswer(status: number, text: string): void {
  if (status !== 200 || text !== ANSWER) {
    throw new Error(`Cannot trust times of the client: answer ${status}`);
  }
}

function serve(): void {
  const answer = async (request: Request) => {
    const isWhole = await request.text() === BODY;
    return new Response(ANSWER, {
      status: isWhole ? 200 : 400,
      headers: { "content-type": "application/json" },
    });
  };
  const onListen = ({ port }: Deno.NetAddr) => console.log(`port ${port}`);
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, answer);
}

if (import.meta.main) {
  if (Deno.args.includes("--serve")) serve();
  else await printResult(clientTimes);
}
