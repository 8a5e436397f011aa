import type { DescriptorSource, DomainSource, RateLimitSource } from "../rule_source.ts";
import type { Problem } from "../../base/problem.ts";
import { re2Matcher } from "../../base/re2_matcher.ts";
import { UNITS } from "../units.ts";
import { MAX_EXPRESSION_STEPS, MAX_EXPRESSIONS, valueText } from "./value_match.ts";

/** Maximum total length of the full names of all rules. */
const MAX_NAME_CHARACTERS = 64 * 1024 * 1024;
/** The most steps of all expressions, which take 33 bytes each. */
const MAX_ALL_STEPS = 1_000_000;

/** Options of `checkSources`. */
export interface SourceChecks {
  /** Why a domain has one source only, and what to do; absent if it may have several. */
  readonly oneSourcePerDomain?: string | undefined;
  /** Why the cache counts no other algorithm than fixed windows, and what to do; absent if it does. */
  readonly fixedWindowsOnly?: string | undefined;
  /** Lists of windows that cannot be taken together; absent if all can. */
  readonly separateWindows?: SeparateWindows | undefined;
  /** Why events of rules are not sent, and what to do; absent if they are. */
  readonly eventsUnsent?: string | undefined;
}

/** Windows of one rule that are not counted by one server, or not conditionally. */
export interface SeparateWindows {
  /** Why a list that is taken together is not possible, and what to do. */
  readonly why: string;
  /** True if lists of fixed windows are taken together too. */
  readonly ofFixedWindows: boolean;
  /** True if only lists with limits per second and others are concerned. */
  readonly perSecond: boolean;
}

/** Checks sources with valid types; problems are in the order of the sources. */
export function checkSources(
  sources: readonly DomainSource[],
  { oneSourcePerDomain, fixedWindowsOnly, separateWindows, eventsUnsent }: SourceChecks,
): Problem[] {
  const problems: Problem[] = [];
  const domains = new Map<string, { at: string; siblings: Siblings }>();
  const names = { left: MAX_NAME_CHARACTERS };
  const steps = { left: MAX_ALL_STEPS };
  for (const source of sources) {
    if (source.domain === "") {
      problems.push(error(source.at, "domain", "config file cannot have empty domain"));
      continue;
    }
    const known = domains.get(source.domain);
    if (known !== undefined && oneSourcePerDomain !== undefined) {
      const text = `duplicate domain '${source.domain}' in config file; it is already in ${known.at}, and ` +
        oneSourcePerDomain;
      problems.push(error(source.at, "domain", text));
    }
    const siblings = known?.siblings ?? new Map();
    if (known === undefined) domains.set(source.domain, { at: source.at, siblings });
    checkDescriptors(source.descriptors, {
      domain: source.domain,
      parent: source.domain,
      parentRule: undefined,
      siblings,
      problems,
      names,
      steps,
      fixedWindowsOnly,
      separateWindows,
      eventsUnsent,
    });
  }
  return problems;
}

/** Rules of one level by key and then value, so that (`a_b`, `c`) differs from (`a`, `b_c`). */
type Siblings = Map<string, KeySiblings>;

interface KeySiblings {
  readonly byValue: Map<string, DescriptorSource>;
  /** By expression. */
  expressions: Map<string, DescriptorSource> | undefined;
  /** Of the expressions. */
  steps: number;
}

interface Level {
  readonly domain: string;
  readonly parent: string;
  /** Undefined at the first level. */
  readonly parentRule: DescriptorSource | undefined;
  readonly siblings: Siblings;
  readonly problems: Problem[];
  readonly names: { left: number };
  readonly steps: { left: number };
  readonly fixedWindowsOnly: string | undefined;
  readonly separateWindows: SeparateWindows | undefined;
  readonly eventsUnsent: string | undefined;
}

function checkDescriptors(descriptors: readonly DescriptorSource[], level: Level): void {
  for (const descriptor of descriptors) {
    const { at, path, key } = descriptor;
    const value = valueText(descriptor);
    if (key === "") {
      level.problems.push(error(at, `${path}.key`, "descriptor has empty key"));
      continue;
    }
    const text = `${level.parent}.${value === "" ? key : `${key}_${value}`}`;
    if (level.names.left < 0) return;
    level.names.left -= text.length;
    if (level.names.left < 0) {
      const found =
        `the full names of the rules up to here have more than ${MAX_NAME_CHARACTERS} characters; ` +
        "use a shorter domain, shorter keys or fewer rules";
      level.problems.push(error(at, path, found));
      return;
    }
    checkDuplicate(descriptor, text, level);
    if (descriptor.shareThreshold && descriptor.match === undefined && !value.includes("*")) {
      const found = `share_threshold requires a value with '*', 'regex' or 'in', but found '${value}'`;
      level.problems.push(error(at, `${path}.share_threshold`, found));
    }
    if (descriptor.identifies) checkIdentifies(descriptor, level.problems);
    if (key.includes("*")) level.problems.push(starInKey(descriptor));
    checkEvents(descriptor, level);
    checkFallback(descriptor, level);
    if (descriptor.rateLimit !== undefined) {
      checkReplaces(descriptor.rateLimit, level.problems);
      const windows = [descriptor.rateLimit, ...descriptor.rateLimit.further ?? []];
      for (const window of windows) checkAlgorithm(window, level);
      if (windows.length > 1) checkWindows(descriptor, windows, level);
    }
    const nested = { ...level, parent: text, parentRule: descriptor, siblings: new Map() };
    checkDescriptors(descriptor.descriptors, nested);
  }
}

function checkDuplicate(descriptor: DescriptorSource, text: string, level: Level): void {
  const { at, path, key, value, match } = descriptor;
  let siblings = level.siblings.get(key);
  if (siblings === undefined) {
    level.siblings.set(key, siblings = { byValue: new Map(), expressions: undefined, steps: 0 });
  }
  if (match !== undefined && "regex" in match) {
    checkExpression(descriptor, match.regex, siblings, level);
    return;
  }
  const { byValue } = siblings;
  for (const [index, one] of match?.in.entries() ?? [[0, value] as const]) {
    const first = byValue.get(one);
    if (first === undefined) {
      byValue.set(one, descriptor);
      continue;
    }
    // A rule that names one value has the text of earlier versions.
    const found = match === undefined && first.match === undefined
      ? `duplicate descriptor composite key '${text}'; the first one is at ${first.at}`
      : `duplicate value '${one}' of the key '${key}'; it is already in the rule at ${first.at}; remove one`;
    level.problems.push(error(at, match === undefined ? path : `${path}.value.in[${index}]`, found));
  }
}

function checkExpression(
  descriptor: DescriptorSource,
  regex: string,
  siblings: KeySiblings,
  { problems, steps }: Level,
): void {
  const { at, path, key } = descriptor;
  const report = (text: string) => problems.push(error(at, `${path}.value.regex`, text));
  const expressions = siblings.expressions ??= new Map();
  const first = expressions.get(regex);
  if (first !== undefined) {
    report(`duplicate expression of the key '${key}'; it is already in the rule at ${first.at}; remove one`);
    return;
  }
  expressions.set(regex, descriptor);
  const read = re2Matcher(regex, MAX_EXPRESSION_STEPS);
  if ("problem" in read) return;
  const stepsBefore = siblings.steps;
  siblings.steps += read.steps;
  const leftBefore = steps.left;
  steps.left -= read.steps;
  if (leftBefore >= 0 && steps.left < 0) {
    report(
      `the expressions of all rules have more than ${MAX_ALL_STEPS} steps; use fewer of them, or a list`,
    );
  }
  const advice = "combine some of them, as in '^(a|b)$', or use a list or a wildcard";
  if (expressions.size === MAX_EXPRESSIONS + 1) {
    report(`expected at most ${MAX_EXPRESSIONS} expressions for the key '${key}' in one list; ${advice}`);
  } else if (stepsBefore <= MAX_EXPRESSION_STEPS && siblings.steps > MAX_EXPRESSION_STEPS) {
    const text = `the expressions for the key '${key}' in this list have more than ${MAX_EXPRESSION_STEPS} ` +
      "steps, with each repetition by a count as often as it counts; use smaller counts, or a list or a wildcard";
    report(text);
  }
}

function checkFallback(descriptor: DescriptorSource, { parentRule, problems }: Level): void {
  const { at, path, fallback, value, match, rateLimit } = descriptor;
  if (fallback === undefined) return;
  const report = (text: string) => problems.push(error(at, `${path}.fallback`, text));
  if (value !== "" || match !== undefined) {
    report("is for values without a rule, but this rule has a value; remove one of them");
  }
  if (rateLimit !== undefined) {
    report("takes the limit of the parent, but this rule has a rate_limit; remove one of them");
  }
  if (parentRule === undefined) {
    report("requires a parent, but this rule is at the first level; remove it");
  } else if (parentRule.rateLimit === undefined && parentRule.fallback === undefined) {
    report(`requires a rate_limit of the parent at ${parentRule.at}; add one there, or remove fallback`);
  }
}

/** The value of the last entry can name only hits that are given back. */
function checkIdentifies(descriptor: DescriptorSource, problems: Problem[]): void {
  const { at, path, shareThreshold, valueToMetric, descriptors, rateLimit } = descriptor;
  const value = valueText(descriptor);
  const found = (text: string) => void problems.push(error(at, `${path}.identifies`, text));
  if (descriptors.length > 0) {
    found("requires the last level of a rule; move it to the nested descriptor, or remove one of them");
  }
  if (rateLimit !== undefined && rateLimit.algorithm?.name !== "concurrency") {
    found("requires a rate_limit with 'algorithm: concurrency'; set it, or remove identifies");
  } else if (rateLimit === undefined && descriptors.length === 0) {
    found("requires a rate_limit with 'algorithm: concurrency'; add one, or remove identifies");
  }
  if (value !== "") {
    found(`requires a level without a value, but found '${value}'; remove value, or identifies`);
  }
  if (shareThreshold) found("has no meaning with share_threshold; remove one of them");
  if (valueToMetric) {
    found(
      "has no meaning with value_to_metric, as each request would have its own metric; remove one of them",
    );
  }
}

/** In other implementations it is a wildcard. */
function starInKey({ at, path }: DescriptorSource): Problem {
  const text = "'*' stands for itself in a key, so this rule is for requests with this very key; " +
    "patterns are for values alone";
  return { severity: "warning", at, path: `${path}.key`, text };
}

function checkReplaces(limit: RateLimitSource, problems: Problem[]): void {
  for (const { at, path, name } of limit.replaces) {
    if (name === "") {
      problems.push(error(at, path, "should not have an empty replaces entry"));
    } else if (name === limit.name) {
      problems.push(error(at, path, `replaces should not contain name of same descriptor '${name}'`));
    }
  }
}

function checkAlgorithm({ path, algorithm }: RateLimitSource, { problems, fixedWindowsOnly }: Level): void {
  if (algorithm === undefined || fixedWindowsOnly === undefined) return;
  problems.push(error(algorithm.at, `${path}.algorithm`, `${algorithm.name} ${fixedWindowsOnly}`));
}

/** The most windows of one rule, each of which takes time and memory for every call. */
const MAX_WINDOWS = 8;

function checkWindows(
  { at, path }: DescriptorSource,
  windows: readonly RateLimitSource[],
  { problems, separateWindows, domain }: Level,
): void {
  const place = `${path}.rate_limits`;
  if (windows.length > MAX_WINDOWS) {
    problems.push(error(at, place, `expected at most ${MAX_WINDOWS} windows, got ${windows.length}`));
  }
  const lengths = new Map<number, RateLimitSource>();
  for (const window of windows) {
    const seconds = lengthOf(window);
    const same = lengths.get(seconds);
    if (same === undefined) lengths.set(seconds, window);
    else {
      const text = `has the length of ${same.path}, ${seconds} s; keep the one with the lower limit`;
      problems.push(error(window.at, window.path, text));
    }
  }
  if (domain.startsWith("}")) {
    problems.push(
      error(
        at,
        place,
        "requires a domain that does not begin with '}', which would end the hash tag of its keys",
      ),
    );
  }
  if (separateWindows === undefined) return;
  const { why, ofFixedWindows, perSecond } = separateWindows;
  const isJoint = ofFixedWindows || windows.some(({ algorithm }) => algorithm !== undefined);
  const isMixed = windows.some(({ unit }) => unit === "SECOND") &&
    windows.some(({ unit }) => unit !== "SECOND");
  if (isJoint && (isMixed || !perSecond)) problems.push(error(at, place, why));
}

function lengthOf({ unit, unitMultiplier }: RateLimitSource): number {
  return unit === undefined ? 0 : UNITS[unit].seconds * unitMultiplier;
}

function checkEvents({ at, path, events, rateLimit }: DescriptorSource, level: Level): void {
  if (events === undefined) return;
  const place = `${path}.events`;
  if (rateLimit === undefined) {
    level.problems.push(error(at, place, "requires a rate_limit; add one, or remove events"));
  } else if (rateLimit.unlimited) {
    const text = "has no meaning with 'unlimited: true'; remove one of them";
    level.problems.push(error(at, place, text));
  } else if (level.eventsUnsent !== undefined) {
    level.problems.push({ severity: "warning", at, path: place, text: level.eventsUnsent });
  }
}

function error(at: string, path: string, text: string): Problem {
  return { severity: "error", at, path, text };
}
