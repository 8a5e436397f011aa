import {
  type Algorithm,
  ALGORITHMS,
  type AlgorithmSource,
  type RateLimitSource,
} from "../ratelimit/rule_source.ts";
import {
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  type Unit,
  UNIT_NAMES,
  unitOfName,
  UNITS,
} from "../ratelimit/units.ts";
import { isCalendarUnit, isTimezone } from "../ratelimit/algorithms/calendar_windows.ts";
import { MAX_BURST } from "../ratelimit/algorithms/bucket.ts";
import { parseDuration } from "../base/duration.ts";
import { FieldReader } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { described, shown } from "../yaml/scalar.ts";
import type { YamlList, YamlMapping } from "../yaml/value.ts";
import { checkKeys } from "./rule_keys.ts";

const MAX_LEASE_MS = 24 * 3_600_000;
/** The longest window that is not a fixed one: its microseconds are exact. */
const MAX_WINDOW_SECONDS = 100 * UNITS.YEAR.seconds;
/** Keys that belong to one algorithm. */
const OWN_KEYS = { burst: "token_bucket", max_in_flight: "concurrency", lease: "concurrency" } as const;
const UNIT_KEYS = ["unit", "requests_per_unit", "unit_multiplier"];
const CALENDAR_KEYS = ["calendar", "timezone"];
/** The months of windows that divide a year. */
const CALENDAR_MONTHS = [1, 2, 3, 4, 6, 12];

/** Reads a `rate_limit` block; undefined when a part of it is invalid, which is reported. */
export function readRateLimit(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
): RateLimitSource | undefined {
  checkKeys(log, mapping, path, "rateLimit");
  const fields = new FieldReader(log, mapping, path);
  const unlimited = fields.flag("unlimited");
  const algorithm = fields.choice("algorithm", ALGORITHMS) ?? "fixed_window";
  // Which other fields are required depends on these two: without them, nothing is reported about the fields.
  const amount = fields.isValid ? readAmount(fields, { unlimited, algorithm }) : undefined;
  const name = fields.text("name") ?? "";
  const replaces = readReplaces(fields);
  if (amount === undefined || !fields.isValid) return undefined;
  return { at: log.at(mapping.offset), path, unlimited, ...amount, name, replaces };
}

/** Keys that belong to the rule, not to one of its windows. */
export const LIST_KEYS = ["name", "replaces"];

/**
 * Reads a list `rate_limits`, whose name and replaced rules are next to it: the first window, with the others. Undefined
 * when a part of it is invalid, which is reported.
 */
export function readRateLimits(fields: FieldReader, list: YamlList): RateLimitSource | undefined {
  const { log } = fields;
  const windows: RateLimitSource[] = [];
  for (const [index, item] of list.items.entries()) {
    const path = `${fields.pathOf("rate_limits")}[${index}]`;
    if (item.kind === "mapping") {
      const window = readWindow(log, item, path);
      if (window !== undefined) windows.push(window);
    } else if (item.kind !== "broken") {
      const expected = "expected a mapping such as '{ unit: second, requests_per_unit: 10 }'";
      log.error(item.offset, path, `${expected}, got ${described(item)}`);
    }
  }
  if (list.items.length < 2) {
    fields.error(
      "rate_limits",
      `expected two windows or more, got ${list.items.length}; use rate_limit for one`,
    );
  }
  const name = fields.text("name") ?? "";
  const replaces = readReplaces(fields);
  const [first, ...further] = windows;
  const isValid = windows.length === list.items.length && !fields.failed("rate_limits");
  if (first === undefined || !isValid || fields.failed("name") || fields.failed("replaces")) return undefined;
  return { ...first, name, replaces, further };
}

function readWindow(log: ProblemLog, mapping: YamlMapping, path: string): RateLimitSource | undefined {
  const window = readRateLimit(log, mapping, path);
  const fields = new FieldReader(log, mapping, path);
  refuseKeys(fields, LIST_KEYS, "belongs to the rule; write it next to rate_limits");
  if (window?.unlimited === true) {
    fields.error("unlimited", "has no meaning in a list of windows; remove the window, or use rate_limit");
  }
  if (window?.algorithm?.name === "concurrency") {
    fields.error("algorithm", "limits hits in flight, not those of a window; use rate_limit in another rule");
  }
  return fields.isValid ? window : undefined;
}

type Amount = Pick<
  RateLimitSource,
  "unit" | "requestsPerUnit" | "unitMultiplier" | "calendar" | "algorithm"
>;

/** The number of hits that pass in a time. */
function readAmount(
  fields: FieldReader,
  { unlimited, algorithm }: { readonly unlimited: boolean; readonly algorithm: Algorithm },
): Amount | undefined {
  if (unlimited) {
    refuseKeys(
      fields,
      ["algorithm", ...CALENDAR_KEYS],
      "has no meaning with 'unlimited: true'; remove one of them",
    );
  }
  for (const [key, owner] of Object.entries(OWN_KEYS)) {
    if (owner !== algorithm) {
      refuseKeys(fields, [key], `requires 'algorithm: ${owner}'; set it, or remove ${key}`);
    }
  }
  if (!unlimited && algorithm !== "fixed_window") {
    const text = `has no meaning with 'algorithm: ${algorithm}', which has no fixed windows; remove it`;
    refuseKeys(fields, CALENDAR_KEYS, text);
  }
  if (algorithm === "concurrency") return readConcurrency(fields);
  const unit = readUnit(fields, unlimited);
  const requestsPerUnit = readRequestsPerUnit(fields, unlimited);
  const unitMultiplier = readUnitMultiplier(fields, unlimited);
  if (UNIT_KEYS.some((key) => fields.failed(key))) return undefined;
  if (unlimited) return { unit: undefined, requestsPerUnit: requestsPerUnit ?? 0, unitMultiplier };
  if (unit === undefined || requestsPerUnit === undefined) return undefined;
  const amount = { unit, requestsPerUnit, unitMultiplier };
  if (algorithm === "fixed_window") {
    const calendar = readCalendar(fields, amount);
    return calendar === undefined ? amount : { ...amount, calendar };
  }
  if (UNITS[unit].seconds * unitMultiplier > MAX_WINDOW_SECONDS) {
    refuseKeys(fields, ["unit_multiplier"], `expected at most 100 years with 'algorithm: ${algorithm}'`);
    return undefined;
  }
  const at = fields.log.at(fields.offset("algorithm"));
  if (algorithm === "sliding_window") return { ...amount, algorithm: { at, name: algorithm } };
  const burst = readBurst(fields, requestsPerUnit);
  return burst === undefined ? undefined : { ...amount, algorithm: { at, name: algorithm, burst } };
}

/** The calendar that windows follow; undefined if the block says nothing, or what is invalid, which is reported. */
function readCalendar(
  fields: FieldReader,
  { unit, unitMultiplier }: { readonly unit: Unit; readonly unitMultiplier: number },
): RateLimitSource["calendar"] {
  const isCalendar = fields.flag("calendar");
  const timezone = fields.text("timezone");
  if (!isCalendar && !fields.failed("calendar")) {
    refuseKeys(fields, ["timezone"], "requires 'calendar: true'; set it, or remove timezone");
  }
  if (!isCalendar) return fields.has("calendar") ? false : undefined;
  const name = unit.toLowerCase();
  if (!isCalendarUnit(unit)) {
    const text =
      `has no meaning with 'unit: ${name}'; expected the unit day, week, month or year, or no calendar`;
    fields.error("calendar", text);
  } else if (unit !== "MONTH" && unitMultiplier !== 1) {
    const text =
      `has no meaning with 'calendar: true' and 'unit: ${name}'; remove one of them, or use months`;
    fields.error("unit_multiplier", text);
  } else if (unit === "MONTH" && !CALENDAR_MONTHS.includes(unitMultiplier)) {
    const numbers = CALENDAR_MONTHS.join(", ");
    const text = `expected one of ${numbers} with 'calendar: true': windows of months divide the year`;
    fields.error("unit_multiplier", `${text}; got ${unitMultiplier}`);
  }
  if (timezone !== undefined && !isTimezone(timezone)) {
    const text = `unknown time zone '${shown(timezone)}'; expected an IANA name, such as Europe/Paris or UTC`;
    fields.error("timezone", text);
  }
  return { timezone: timezone ?? "UTC" };
}

function readConcurrency(fields: FieldReader): Amount | undefined {
  const text = "has no meaning with 'algorithm: concurrency', which counts hits in flight; " +
    "use max_in_flight and lease";
  refuseKeys(fields, UNIT_KEYS, text);
  const most = fields.count("max_in_flight", { min: 0, max: MAX_REQUESTS_PER_UNIT });
  if (most === undefined && !fields.failed("max_in_flight")) {
    const missing =
      `expected a whole number from 0 to ${MAX_REQUESTS_PER_UNIT} (0 blocks every request); got nothing`;
    fields.error("max_in_flight", missing);
  }
  const leaseSeconds = readLease(fields);
  if (most === undefined || leaseSeconds === undefined) return undefined;
  const at = fields.log.at(fields.offset("algorithm"));
  const algorithm: AlgorithmSource = { at, name: "concurrency", leaseSeconds };
  return { unit: undefined, requestsPerUnit: most, unitMultiplier: 1, algorithm };
}

function readLease(fields: FieldReader): number | undefined {
  const text = fields.text("lease");
  if (fields.failed("lease")) return undefined;
  const leaseMs = parseDuration(text ?? "") ?? 0;
  if (leaseMs > 0 && leaseMs % 1_000 === 0 && leaseMs <= MAX_LEASE_MS) return leaseMs / 1_000;
  const got = text === undefined ? "nothing" : `'${shown(text)}'`;
  const expected = "expected whole seconds up to 24h, longer than any request, such as 60s";
  fields.error("lease", `${expected}; got ${got}`);
  return undefined;
}

function readBurst(fields: FieldReader, requestsPerUnit: number): number | undefined {
  const burst = fields.count("burst", { min: 1, max: MAX_BURST });
  if (fields.failed("burst")) return undefined;
  if (burst !== undefined && requestsPerUnit === 0) {
    refuseKeys(fields, ["burst"], "has no meaning with 'requests_per_unit: 0', which blocks every request");
  }
  if (burst !== undefined || requestsPerUnit <= MAX_BURST) return burst ?? requestsPerUnit;
  fields.warning(
    "requests_per_unit",
    `the burst is ${MAX_BURST}, the largest one; set 'burst' to this or less`,
  );
  return MAX_BURST;
}

/** Reports each of these keys that is there. */
function refuseKeys(fields: FieldReader, keys: readonly string[], text: string): void {
  for (const key of keys) if (fields.has(key)) fields.error(key, text);
}

function readUnit(fields: FieldReader, unlimited: boolean): Unit | undefined {
  const text = fields.text("unit");
  if (fields.failed("unit")) return undefined;
  const unit = unitOfName(text ?? "");
  if (!unlimited) {
    const names = UNIT_NAMES.map((name) => name.toLowerCase()).join(", ");
    const invalid = `invalid rate limit unit '${shown(text ?? "")}'; expected ${names}`;
    if (unit === undefined) fields.error("unit", invalid);
    return unit;
  }
  if (unit !== undefined) {
    fields.error("unit", "should not specify rate limit unit when unlimited; remove unit, or unlimited");
  } else if (text !== undefined) {
    fields.warning("unit", `rate limit unit '${shown(text)}' has no effect with unlimited; remove it`);
  }
  return undefined;
}

function readRequestsPerUnit(fields: FieldReader, unlimited: boolean): number | undefined {
  const count = fields.count("requests_per_unit", { min: 0, max: MAX_REQUESTS_PER_UNIT });
  if (count === undefined && !unlimited && !fields.failed("requests_per_unit")) {
    const text = `expected a whole number from 0 to ${MAX_REQUESTS_PER_UNIT} (0 blocks every request), or ` +
      "'unlimited: true'; got nothing";
    fields.error("requests_per_unit", text);
  }
  return count;
}

function readUnitMultiplier(fields: FieldReader, unlimited: boolean): number {
  const count = fields.count("unit_multiplier", { min: 1, max: MAX_UNIT_MULTIPLIER });
  if (count !== undefined && unlimited) {
    fields.warning("unit_multiplier", "has no effect with unlimited; remove it");
  }
  return count ?? 1;
}

function readReplaces(fields: FieldReader): RateLimitSource["replaces"] {
  const { log } = fields;
  const replaces: { at: string; path: string; name: string }[] = [];
  for (const [index, item] of fields.list("replaces")?.items.entries() ?? []) {
    const path = `${fields.pathOf("replaces")}[${index}]`;
    if (item.kind === "broken") continue;
    if (item.kind !== "mapping") {
      log.error(item.offset, path, `expected a mapping such as 'name: a', got ${described(item)}`);
      continue;
    }
    checkKeys(log, item, path, "replaces");
    const itemFields = new FieldReader(log, item, path);
    const name = itemFields.text("name") ?? "";
    if (itemFields.failed("name")) continue;
    if (name !== "") {
      replaces.push({ at: log.at(item.offset), path, name });
    } else {
      const text = "should not have an empty replaces entry; write the name of a rule, such as 'name: a'";
      log.error(itemFields.offset("name"), path, text);
    }
  }
  return replaces;
}
