import { markdownTable, wholeNumber } from "./markdown_table.ts";
import type { OutageFacts, Phase } from "./outage_record.ts";

/** Limits for the effects of an outage. */
interface OutageLimits {
  /** Calls a second that were to be made. */
  readonly rate: number;
  /** The longest time of a call. */
  readonly callMs: number;
  /** More resident memory while the cache is unavailable than at most before. */
  readonly growthMb: number;
  /** From the return of the cache until every call is answered OK again. */
  readonly recoveryMs: number;
}

/** The part of the calls that has to be made for a run to count. */
const LEAST_PART = 0.9;

/** Everything that was not as it has to be, one sentence each; none is good. */
export function problemsOf(facts: OutageFacts, limits: OutageLimits): string[] {
  const { rate, callMs, growthMb, recoveryMs } = limits;
  const found = (phase: Phase) => facts.phases.filter((metrics) => metrics.phase === phase);
  const [before, away] = [found("before"), found("away")];
  const most = (phase: typeof away) => Math.max(0, ...phase.map(({ mostMb }) => mostMb));
  // The collector lets memory rise and fall over longer times than one phase, so both count as the level.
  const growth = most(away) - most([...found("warm-up"), ...before]);
  const recovered = facts.firstOkMs === undefined
    ? undefined
    : Math.max(facts.firstOkMs, facts.lastRefusedMs ?? 0);
  // Of all phases together: a generator that had to wait makes up for it in the next one.
  const answered = facts.phases.reduce((sum, { ok, refused }) => sum + ok + refused, 0);
  const due = Math.floor(facts.phases.reduce((sum, { seconds }) => sum + LEAST_PART * rate * seconds, 0));
  const checked = facts.phases.filter(({ phase }) => phase !== "warm-up");
  return [
    ...Object.entries(facts.faults).map(([fault, times]) => `${fault} (${times} times)`),
    ...(answered < due ? [`only ${answered} calls were answered, at least ${due} were due`] : []),
    ...checked.filter(({ longestMs }) => longestMs > callMs)
      .map(({ phase, longestMs }) => `${phase}: a call took ${longestMs.toFixed(0)} ms, more than ${callMs}`),
    ...before.filter(({ refused }) => refused > 0)
      .map(({ refused }) => `before: ${refused} calls were refused while the cache was there`),
    ...away.filter(({ refused }) => refused === 0).map(() =>
      "away: no call was refused, so no outage was seen"
    ),
    ...(most(before) === 0 || most(away) === 0 ? ["resident memory was not seen"] : []),
    ...(growth > growthMb ? [`away: memory grew by ${growth.toFixed(1)} MB, more than ${growthMb}`] : []),
    ...(recovered === undefined || recovered > recoveryMs
      ? [`back: calls were not answered again within ${recoveryMs} ms`]
      : []),
  ];
}

/** The counts of each phase, as a Markdown table. */
export function outageTable(outages: Readonly<Record<string, OutageFacts>>): string {
  const head = ["outage", "phase", "seconds", "OK", "UNAVAILABLE", "longest ms", "resident MB"];
  const rows = Object.entries(outages).flatMap(([name, { phases }]) =>
    phases.map(({ phase, seconds, ok, refused, longestMs, leastMb, mostMb }) => [
      name,
      phase,
      seconds.toFixed(1),
      wholeNumber(ok),
      wholeNumber(refused),
      longestMs.toFixed(1),
      `${leastMb.toFixed(1)} to ${mostMb.toFixed(1)}`,
    ])
  );
  return markdownTable(head, rows);
}
