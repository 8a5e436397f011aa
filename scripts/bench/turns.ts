import process from "node:process";
import type { CallSource } from "../../src/load/call_source.ts";
import { LoadConnection } from "../../src/load/load_connection.ts";
import { type CallRecord, LoadRecord, type LoadResult } from "../../src/load/load_record.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { printResult } from "./measuring_script.ts";
import { messageCheck } from "../../tests/harness/bench_answer.ts";
import { benchCalls, type LoadName, RULES_OF } from "../../tests/harness/bench_rules.ts";

/** Time that the last answers of a turn may take after its time is over, and connections to open. */
const GRACE_MS = 10_000;

/** Options of `takeTurns`. */
interface TurnsOptions {
  /** Ports on the loopback of the servers that are compared. */
  readonly ports: readonly number[];
  /** Turns of each server. */
  readonly turns: number;
  /** Time of one turn. */
  readonly seconds: number;
  /** Connections to each server. */
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly inFlight: number;
  readonly keys: number;
  /** The number of the first key; 0 when absent. */
  readonly firstKey?: number;
  readonly batch: number;
  readonly load: LoadName;
}

/**
 * Makes calls to several servers in short turns, to one after the other and in another order each time, and checks
 * every answer; answers the turns of each server, in the order in which the servers were given. Neighbouring turns
 * are a fraction of a second apart, so what else the machine does hits all servers alike.
 */
export async function takeTurns(options: TurnsOptions): Promise<LoadResult[][]> {
  const deadline = new AbortController();
  const duration = options.ports.length * options.turns * (options.seconds * 1_000 + GRACE_MS);
  const timer = setTimeout(() => deadline.abort(), duration);
  const servers = options.ports.map((port) => new Server(port, options, deadline.signal));
  await Promise.all(servers.map(({ ready }) => ready));
  for (let turn = 0; turn < options.turns; turn++) {
    for (const server of inTurn(servers, turn)) await server.turn(options.seconds);
  }
  await Promise.all(servers.map((server) => server.finish()));
  clearTimeout(timer);
  return servers.map(({ results }) => results);
}

/** The same things, beginning one further each time, and every other time backwards. */
function inTurn<T>(things: readonly T[], turn: number): T[] {
  const first = (turn >> 1) % Math.max(1, things.length);
  const rotated = [...things.slice(first), ...things.slice(0, first)];
  return turn % 2 === 0 ? rotated : rotated.toReversed();
}

/** The connections to one server, which are idle between its turns. */
class Server implements CallRecord {
  readonly #source: CallSource;
  readonly #connections: readonly LoadConnection[];
  readonly #results: LoadResult[] = [];
  #record = new LoadRecord();
  /** Calls without an answer. */
  #open = 0;
  #stopAt = 0;
  #turn = Promise.withResolvers<void>();

  constructor(port: number, { inFlight, connections, ...source }: TurnsOptions, deadline: AbortSignal) {
    this.#source = benchCalls({ ...source, stride: 1 });
    const checkMessage = messageCheck({
      code: "OK",
      descriptors: source.batch * RULES_OF[source.load].length,
    });
    this.#connections = Array.from({ length: connections }, () =>
      new LoadConnection({
        peer: { address: { host: "127.0.0.1", port } },
        path: RATE_LIMIT_PATH,
        inFlight,
        checkMessage,
        deadline,
        record: this,
        nextCall: () => this.#source.next(),
        isPaused: (now) => now >= this.#stopAt,
      }));
  }

  /** Settles when calls can begin, or when they never will. */
  get ready(): Promise<unknown> {
    return Promise.all(this.#connections.map(({ ready }) => ready));
  }

  get results(): LoadResult[] {
    return this.#results;
  }

  /** Makes calls for this time and waits for the last answer. */
  async turn(seconds: number): Promise<void> {
    this.#turn = Promise.withResolvers();
    const cpuBefore = process.cpuUsage();
    const begin = performance.now();
    this.#stopAt = begin + seconds * 1_000;
    for (const connection of this.#connections) connection.resume();
    if (this.#open === 0) this.error("no connection takes a call");
    else await this.#turnEnd(seconds);
    const { user, system } = process.cpuUsage(cpuBefore);
    this.#results.push(this.#record.result((user + system) / 1_000 / (performance.now() - begin)));
    this.#record = new LoadRecord();
  }

  /** Waits for the last answer, which may come before the time is over and no further call be begun. */
  async #turnEnd(seconds: number): Promise<void> {
    const timer = setTimeout(() => this.#endTurn(performance.now()), seconds * 1_000 + 1);
    await this.#turn.promise;
    clearTimeout(timer);
  }

  /** Closes the connections. */
  async finish(): Promise<void> {
    for (const connection of this.#connections) connection.finish();
    await Promise.all(this.#connections.map(({ closed }) => closed));
  }

  /** Counts a call that starts at `now`. */
  begin(now: number): void {
    this.#open++;
    this.#record.begin(now);
  }

  /** Counts an answer with the statuses of success, whatever its body. */
  goodAnswer(start: number, end: number): void {
    this.#record.goodAnswer(start, end);
    this.#open--;
    this.#endTurn(end);
  }

  /** Counts an answer with any other statuses. */
  badAnswer(statuses: string, _start: number, end: number): void {
    this.#record.badAnswer(statuses);
    this.#open--;
    this.#endTurn(end);
  }

  /** Counts calls that get no answer. */
  lost(text: string, calls: number): void {
    this.#record.lost(text, calls);
    this.#open -= calls;
    this.#endTurn(performance.now());
  }

  /** Counts something that went wrong, so many times. */
  error(text: string, times = 1): void {
    this.#record.error(text, times);
  }

  #endTurn(now: number): void {
    if (this.#open === 0 && now >= this.#stopAt) this.#turn.resolve();
  }
}

if (import.meta.main) await printResult(takeTurns);
