import type { StatsStore } from "./store.ts";

/** The figures of one method's calls, as an engine tells them. */
export interface ServerCalls {
  /** A call has started. */
  started(): void;
  /** A call has ended, so many milliseconds after its start. */
  ended(ms: number): void;
}

/**
 * Shows `ratelimit_server.<method>.total_requests` and `.response_time` for each method that it is asked
 * for. Methods of one name share them, of whatever service they are.
 */
export function serverCalls(stats: StatsStore): (method: string) => ServerCalls {
  const known = new Map<string, ServerCalls>();
  return (method) => {
    let calls = known.get(method);
    if (calls === undefined) known.set(method, calls = callsOf(stats, `ratelimit_server.${method}`));
    return calls;
  };
}

function callsOf(stats: StatsStore, prefix: string): ServerCalls {
  const responseTime = stats.timer(`${prefix}.response_time`);
  let total = 0;
  stats.addCounter(`${prefix}.total_requests`, () => total);
  return {
    started: () => void total++,
    ended: (ms) => responseTime.record(ms),
  };
}
