import type { DescriptorSource, DomainSource, RateLimitSource } from "../rule_source.ts";
import type { Problem } from "../../base/problem.ts";

/** Maximum total length of the full names of all rules. */
const MAX_NAME_CHARACTERS = 64 * 1024 * 1024;

/** Options of `checkSources`. */
export interface SourceChecks {
  /** Why a domain has one source only, and what to do; absent if it may have several. */
  readonly oneSourcePerDomain?: string | undefined;
  /** Why the cache counts no other algorithm than fixed windows, and what to do; absent if it does. */
  readonly fixedWindowsOnly?: string | undefined;
  /** Why events of rules are not sent, and what to do; absent if they are. */
  readonly eventsUnsent?: string | undefined;
}

/** Checks sources with valid types; problems are in the order of the sources. */
export function checkSources(
  sources: readonly DomainSource[],
  { oneSourcePerDomain, fixedWindowsOnly, eventsUnsent }: SourceChecks,
): Problem[] {
  const problems: Problem[] = [];
  const domains = new Map<string, { at: string; siblings: Siblings }>();
  const names = { left: MAX_NAME_CHARACTERS };
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
      parent: source.domain,
      siblings,
      problems,
      names,
      fixedWindowsOnly,
      eventsUnsent,
    });
  }
  return problems;
}

/** Rules of one level by key and then value, so that (`a_b`, `c`) differs from (`a`, `b_c`). */
type Siblings = Map<string, Map<string, DescriptorSource>>;

interface Level {
  readonly parent: string;
  readonly siblings: Siblings;
  readonly problems: Problem[];
  readonly names: { left: number };
  readonly fixedWindowsOnly: string | undefined;
  readonly eventsUnsent: string | undefined;
}

function checkDescriptors(descriptors: readonly DescriptorSource[], level: Level): void {
  for (const descriptor of descriptors) {
    const { at, path, key, value } = descriptor;
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
    if (descriptor.shareThreshold && !value.includes("*")) {
      const found = `share_threshold requires a value with '*', but found '${value}'`;
      level.problems.push(error(at, `${path}.share_threshold`, found));
    }
    if (key.includes("*")) level.problems.push(starInKey(descriptor));
    checkEvents(descriptor, level);
    if (descriptor.rateLimit !== undefined) {
      checkReplaces(descriptor.rateLimit, level.problems);
      checkAlgorithm(descriptor.rateLimit, level);
    }
    checkDescriptors(descriptor.descriptors, { ...level, parent: text, siblings: new Map() });
  }
}

function checkDuplicate(descriptor: DescriptorSource, text: string, level: Level): void {
  const { key, value } = descriptor;
  let byValue = level.siblings.get(key);
  if (byValue === undefined) level.siblings.set(key, byValue = new Map());
  const first = byValue.get(value);
  if (first === undefined) {
    byValue.set(value, descriptor);
    return;
  }
  const found = `duplicate descriptor composite key '${text}'; the first one is at ${first.at}`;
  level.problems.push(error(descriptor.at, descriptor.path, found));
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
