import { placeOf } from "../../base/problem.ts";
import { timeText } from "../../base/rfc3339.ts";

/** The kinds of operational events about limits and the configuration. */
export const OPERATIONAL_KINDS = {
  overLimit: "ratelimit.over_limit",
  overLimitEnded: "ratelimit.over_limit.ended",
  nearLimit: "ratelimit.near_limit",
  suppressed: "ratelimit.events_suppressed",
  loaded: "config.loaded",
  rejected: "config.rejected",
} as const;

/** The facts that the events of an episode share. */
export interface LimitFacts {
  readonly domain: string;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly rule: { readonly at: string; readonly metricKey: string };
  readonly limit: { readonly algorithm?: string | undefined };
  readonly isShadow: boolean;
  /** Replacement of the values in events. */
  readonly redact?: "hash" | "omit" | undefined;
  /** Milliseconds, as all times here. */
  readonly freeAt: number;
}

/** The report of a process about a key that is over its limit or near it. */
export interface LimitReport {
  readonly event: "over_limit" | "near_limit";
  /** The counter; with the start of the window if that is fixed. */
  readonly key: string;
  /** Since its last report. */
  readonly hits: number;
  readonly startedAt: number;
  /** When it ends if there are no further hits. */
  readonly endsAt: number;
  /** Of the first report. */
  readonly facts?: LimitFacts | undefined;
}

/** An event to write as it is. */
export interface OperationalEvent {
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reports and events of a process, written in one transaction. */
export interface OperationalBatch {
  /** Of the process. */
  readonly reporter: string;
  /** Increases with each batch of the process; a batch that is sent again has the same number. */
  readonly number: number;
  readonly reports: readonly LimitReport[];
  readonly events: readonly OperationalEvent[];
}

/** Errors of a rejected configuration that its event lists. */
const MAX_PROBLEMS = 10;
const MAX_PROBLEM_LENGTH = 500;

/** A rejected configuration; `problems` are its errors, with their positions. */
export function rejectedEvent(
  data: OperationalEvent["data"],
  problems: readonly string[],
): OperationalEvent {
  const shown = problems.slice(0, MAX_PROBLEMS).map((text) =>
    text.slice(0, MAX_PROBLEM_LENGTH).toWellFormed()
  );
  return {
    kind: OPERATIONAL_KINDS.rejected,
    data: { ...data, errors: problems.length, problems: shown },
  };
}

/** A loaded configuration. */
export function loadedEvent(data: OperationalEvent["data"]): OperationalEvent {
  return { kind: OPERATIONAL_KINDS.loaded, data };
}

/** The facts that all events of an episode share, as JSON text; `hash` replaces a value that is to be hashed. */
export async function sharedFacts(
  { domain, entries, rule, limit: { algorithm = "fixed_window", ...limit }, isShadow, redact }: LimitFacts,
  hash: (text: string) => Promise<string>,
): Promise<string> {
  const shown = [];
  for (const { key, value } of entries) {
    if (redact === undefined) shown.push({ key, value });
    else if (redact === "omit") shown.push({ key });
    else shown.push({ key, value: `hmac-sha256:${await hash(JSON.stringify([key, value]))}` });
  }
  const { file, line } = placeOf(rule.at);
  const shownRule = { file, line, metricKey: rule.metricKey };
  return JSON.stringify({ domain, entries: shown, rule: shownRule, limit, algorithm, shadow: isShadow });
}

/** The time in which a key is over its limit, or near it. */
export interface Episode {
  /** Of the counter. */
  readonly id: string;
  readonly startedAt: number;
  readonly endsAt: number;
  readonly hits: number;
}

/** The data of the first event of an episode. */
export function beginningJson(
  facts: string,
  episode: Omit<Episode, "endsAt" | "hits">,
  freeAt: number,
): string {
  const at = timeText(episode.startedAt);
  return withFields(facts, { episode: nameOf(episode), at, freeAt: timeText(freeAt) });
}

/** The data of its last event. */
export function endingJson(facts: string, episode: Episode): string {
  const { startedAt, endsAt, hits } = episode;
  return withFields(facts, {
    episode: nameOf(episode),
    startedAt: timeText(startedAt),
    endedAt: timeText(endsAt),
    refusedHits: hits,
  });
}

const ID_LENGTH = 16;

/** The same in all events of an episode. */
function nameOf({ id, startedAt }: Pick<Episode, "id" | "startedAt">): string {
  return `${id.slice(0, ID_LENGTH)}-${startedAt}`;
}

/** An object as JSON text with further fields at its end. */
function withFields(json: string, fields: Readonly<Record<string, unknown>>): string {
  return `${json.slice(0, -1)},${JSON.stringify(fields).slice(1)}`;
}
