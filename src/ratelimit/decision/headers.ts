import type { DescriptorStatus, Header } from "../decision.ts";
import { type DecidedWindows, isUncounted } from "./decide_windows.ts";
import { isQuota, type Plan, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { Entry } from "../request.ts";
import type { RateLimit, RuleLevel } from "../rules/rules.ts";
import { windowLength } from "./window.ts";

/** A limit that headers may show. */
interface ShownLimit {
  readonly limit: RateLimit;
  readonly status: DescriptorStatus;
  /** The numbers of the status in headers; a status with a limit has both. */
  readonly remaining: string;
  readonly reset: string;
  readonly entries: readonly Entry[];
  readonly isQuota: boolean;
  /** The length of its current window. */
  readonly windowSeconds: number;
  /** False for another window of its rule that was not counted. */
  readonly isCounted: boolean;
  /** The other windows of its rule, unless this one is one of those. */
  readonly others: readonly ShownLimit[];
}

/** The inputs of headers, in addition to a plan and its statuses. */
export interface HeaderContext {
  readonly policy: Policy;
  readonly nowSeconds: number;
  readonly windows: readonly (DecidedWindows | undefined)[] | undefined;
}

/** The rate limit headers that the policy enables, of the limit that decides or of all limits. */
export function responseHeaders(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  context: HeaderContext,
): Header[] {
  return headersOf(shownLimits(plan, statuses, context), context.policy);
}

/** A number of a status. */
type StatusNumber = "remaining" | "reset";

/** A header whose values differ only in numbers: constant texts, with a number between each two of them. */
export interface HeaderForm {
  readonly key: string;
  readonly texts: readonly string[];
  readonly numbers: readonly StatusNumber[];
}

/** In place of numbers; values are ASCII. */
const MARKS: Readonly<Record<StatusNumber, string>> = { remaining: "\u{e000}", reset: "\u{e001}" };
const ANY_MARK = /[\u{e000}\u{e001}]/gu;
const ANY_STATUS: DescriptorStatus = { code: "OK", limitRemaining: 0 };

/** The forms of the headers of a descriptor that is alone in its request, and has one window, while this one lasts. */
export function headerForms(
  { limit, entries }: PlannedDescriptor & { readonly limit: RateLimit },
  policy: Policy,
  nowSeconds: number,
): HeaderForm[] {
  const windowSeconds = windowLength(limit, nowSeconds);
  const shared = { limit, entries, windowSeconds, status: ANY_STATUS, ...MARKS };
  const shown = { ...shared, isQuota: false, isCounted: true, others: NO_OTHERS };
  return headersOf([shown], policy).map(({ key, value }) => {
    const marks = value.match(ANY_MARK) ?? [];
    const numbers = marks.map((mark) => mark === MARKS.remaining ? "remaining" : "reset");
    return { key, texts: value.split(ANY_MARK), numbers };
  });
}

function headersOf(limits: readonly ShownLimit[], policy: Policy): Header[] {
  const decisive = decisiveOf(limits);
  if (decisive === undefined) return [];
  const { responseHeaders: names, unitHeaders, standardHeaders } = policy;
  const headers: Header[] = [];
  if (unitHeaders !== undefined) {
    addUnits(
      headers,
      limits.flatMap(allOf).filter(({ isCounted }) => isCounted),
      unitHeaders,
    );
  } else if (names !== undefined) addNamed(headers, decisive, names);
  if (standardHeaders) {
    addStandard(headers, unitHeaders === undefined ? [decisive] : atMost(limits, decisive));
  }
  return headers;
}

function numbersOf({ limitRemaining, secondsUntilReset }: DescriptorStatus): Record<StatusNumber, string> {
  return { remaining: String(limitRemaining), reset: String(secondsUntilReset) };
}

function shownLimits(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  { policy, nowSeconds, windows }: HeaderContext,
): ShownLimit[] {
  const shown: ShownLimit[] = [];
  for (const [index, planned] of plan.descriptors.entries()) {
    const status = statuses[index];
    if (planned.limit === undefined || status?.currentLimit === undefined) continue;
    const decided = windows?.[index];
    const decisive = decided?.tightest.limit ?? planned.limit;
    const shared = { entries: planned.entries, isQuota: isQuota(planned, policy) };
    const others = (decided?.all ?? []).flatMap((window): ShownLimit[] => {
      const { planned: { limit }, status } = window;
      if (limit === undefined || limit === decisive) return [];
      const windowSeconds = windowLength(limit, nowSeconds);
      return [{
        ...shared,
        limit,
        status,
        ...numbersOf(status),
        windowSeconds,
        isCounted: !isUncounted(window),
        others: NO_OTHERS,
      }];
    });
    const windowSeconds = windowLength(decisive, nowSeconds);
    shown.push({
      ...shared,
      limit: decisive,
      status,
      ...numbersOf(status),
      windowSeconds,
      isCounted: true,
      others,
    });
  }
  return shown;
}

const NO_OTHERS: readonly ShownLimit[] = [];

/** A limit and the other windows of its rule, in the order of the rule. */
function allOf(shown: ShownLimit): readonly ShownLimit[] {
  const { windows } = shown.limit;
  if (windows === undefined || shown.others.length === 0) return [shown];
  const all = [shown, ...shown.others];
  return windows.limits.flatMap((limit) => all.filter((one) => one.limit === limit));
}

/** The last limit that is exceeded and not a quota, otherwise the first with the least remaining. */
function decisiveOf(limits: readonly ShownLimit[]): ShownLimit | undefined {
  let lowest: ShownLimit | undefined;
  let lastOver: ShownLimit | undefined;
  for (const shown of limits) {
    const { status } = shown;
    if (status.code === "OVER_LIMIT" && !shown.isQuota) lastOver = shown;
    if (lowest === undefined || status.limitRemaining < lowest.status.limitRemaining) lowest = shown;
  }
  return lastOver ?? lowest;
}

function addNamed(
  headers: Header[],
  { limit, remaining, reset }: ShownLimit,
  names: Readonly<Record<"limit" | "remaining" | "reset", string>>,
): void {
  headers.push(
    { key: names.limit, value: String(limit.requestsPerUnit) },
    { key: names.remaining, value: remaining },
    { key: names.reset, value: reset },
  );
}

/** For each unit, in the order of the request, those of its limit that decides. */
function addUnits(
  headers: Header[],
  limits: readonly ShownLimit[],
  names: Readonly<Record<"limit" | "remaining", string>>,
): void {
  const byUnit = Map.groupBy(limits, ({ limit: { unit } }) => unit);
  for (const [unit, ofUnit] of byUnit) {
    const decisive = decisiveOf(ofUnit);
    if (decisive === undefined) continue;
    const suffix = unit === undefined ? CONCURRENT_REQUESTS : `${unit.toLowerCase()}s`;
    headers.push(
      { key: `${names.limit}-${suffix}`, value: String(decisive.limit.requestsPerUnit) },
      { key: `${names.remaining}-${suffix}`, value: decisive.remaining },
    );
  }
}

/** The unit of `concurrency` limits. */
const CONCURRENT_REQUESTS = "concurrent-requests";
/** The most limits in a header, of which each window is one: clients and proxies reject long ones. */
const MAX_SHOWN_LIMITS = 32;

/** The first limits, and the one that decides. */
function atMost(limits: readonly ShownLimit[], decisive: ShownLimit): readonly ShownLimit[] {
  const sizeOf = ({ others }: ShownLimit) => 1 + others.length;
  const first: ShownLimit[] = [];
  let left = MAX_SHOWN_LIMITS - sizeOf(decisive);
  for (const shown of limits) {
    if (shown !== decisive) left -= sizeOf(shown);
    if (left < 0) return first.includes(decisive) ? first : [...first, decisive];
    first.push(shown);
  }
  return first;
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-10: the policies of all windows, and what is left of each limit. */
function addStandard(headers: Header[], limits: readonly ShownLimit[]): void {
  const names = new Set<string>();
  const policies: string[] = [];
  const rests: string[] = [];
  for (const decisive of limits) {
    for (const shown of allOf(decisive)) {
      const { limit, remaining, entries } = shown;
      const name = uniqueName(nameOf(limit, entries), names);
      policies.push(`${name};${policyOf(shown)}`);
      if (shown !== decisive) continue;
      // How long a hit in flight takes does not depend on the limit.
      const reset = limit.conditional?.algorithm === "concurrency" ? "" : `;t=${shown.reset}`;
      rests.push(`${name};r=${remaining}${reset}`);
    }
  }
  headers.push(
    { key: "RateLimit-Policy", value: policies.join(", ") },
    { key: "RateLimit", value: rests.join(", ") },
  );
}

/** The longest name that is not configured as one. */
const MAX_KEY_NAME = 64;

/**
 * The name of a limit, or its place among the rules. Never a value of a request: headers would reflect it. Nor a list, which
 * has the values of other clients.
 */
function nameOf(limit: RateLimit, entries: readonly Entry[]): string {
  const { name, rule, windows } = limit;
  // Windows of one rule differ by their length.
  const length = windows?.keyLengths[windows.limits.indexOf(limit)]?.slice(0, -1);
  const end = length === undefined ? "" : `-${length}`;
  if (name !== "") return name + end;
  const key = rule === undefined
    ? entries.map((entry) => entry.key).join(".")
    : rule.path.some(isList)
    ? rule.path.map((level) =>
      level.value === "" || isList(level) ? level.key : `${level.key}_${level.value}`
    )
      .join(".")
    : rule.fullKey.slice(rule.domain.length + 1);
  return key.slice(0, MAX_KEY_NAME) + end;
}

function isList({ match }: RuleLevel): boolean {
  return match !== undefined && "in" in match;
}

/** The string of a name, followed by a number if another limit has the same. */
function uniqueName(name: string, names: Set<string>): string {
  let text = fieldString(name);
  for (let number = 2; names.has(text); number++) text = fieldString(`${name}-${number}`);
  names.add(text);
  return text;
}

/** The largest integer of a structured field. */
const MAX_FIELD_INTEGER = 999_999_999_999_999;

/** The quota, and its unit or the seconds in which all of it is free again. */
function policyOf({ limit: { requestsPerUnit, conditional }, windowSeconds }: ShownLimit): string {
  if (conditional?.algorithm === "concurrency") return `q=${requestsPerUnit};qu="${CONCURRENT_REQUESTS}"`;
  const quota = conditional?.capacity ?? requestsPerUnit;
  const seconds = quota === requestsPerUnit
    ? windowSeconds
    : Math.ceil(windowSeconds * quota / requestsPerUnit);
  return `q=${quota};w=${fieldInteger(seconds)}`;
}

function fieldInteger(number: number): number {
  return Math.min(number, MAX_FIELD_INTEGER);
}

/** A string of a structured field, which is ASCII without control characters. */
function fieldString(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&")}"`;
}
