/** The rules with one key of one level, as names of statistics need them. */
interface LevelRules {
  readonly exact: ReadonlyMap<string, LevelNode> | undefined;
  readonly patterns: { find(value: string): LevelNode | undefined } | undefined;
  readonly expressions: { find(value: string): LevelNode | undefined } | undefined;
  readonly keyOnly: LevelNode | undefined;
  readonly named: ReadonlyMap<string, readonly { readonly node: LevelNode }[]> | undefined;
}

/** One rule: whether it has a limit, and the rules below it. */
interface LevelNode {
  readonly limit: object | undefined;
  readonly children: ReadonlyMap<string, LevelRules> | undefined;
}

/** The loaded rules by domain. */
export type LevelTables = ReadonlyMap<string, ReadonlyMap<string, LevelRules>>;

/** The parts of a metric key. */
interface KeyLevels {
  readonly domain: string;
  /** One text `key` or `key_value` for each level, from the top. */
  readonly levels: readonly string[];
}

/** Steps until a key that partly fits many rules is no longer compared with them. */
const MAX_STEPS = 100;
/** The characters that are compared with expressions in one step: clients choose how long a value is. */
const CHARACTERS_PER_STEP = 32;
/** Most dots of a recognized domain. */
const MAX_DOMAIN_DOTS = 16;

/**
 * Splits a metric key. Domains, keys and values may contain dots, so the rules decide where a level ends; a key
 * that fits no rule, such as that of a limit in a request, is split at its dots.
 */
export function readLevels(metricKey: string, domains: LevelTables): KeyLevels {
  const known = domainsOf(metricKey, domains);
  for (const { domain, table } of known) {
    const levels = levelsFrom({ text: metricKey, left: MAX_STEPS }, domain.length + 1, table);
    if (levels !== undefined) return { domain, levels };
  }
  const { domain, rest } = behindDomain(metricKey, known[0]?.domain);
  return { domain, levels: rest === "" ? [] : rest.split(".") };
}

/** The domain of a metric key and the rest; without a dot there is no domain. */
export function readDomain(metricKey: string, domains: LevelTables): { domain: string; rest: string } {
  const known = domainsOf(metricKey, domains)[0]?.domain;
  if (known === undefined && !metricKey.includes(".")) return { domain: "", rest: metricKey };
  return behindDomain(metricKey, known);
}

/** The loaded domains that the key starts with, the longest first. */
function domainsOf(metricKey: string, domains: LevelTables): KnownDomain[] {
  const found: KnownDomain[] = [];
  for (let dots = 0, end = -1; dots <= MAX_DOMAIN_DOTS && end < metricKey.length; dots++) {
    end = nextDot(metricKey, end + 1);
    const domain = metricKey.slice(0, end);
    const table = domains.get(domain);
    if (table !== undefined) found.unshift({ domain, table });
  }
  return found;
}

interface KnownDomain {
  readonly domain: string;
  readonly table: ReadonlyMap<string, LevelRules>;
}

function behindDomain(metricKey: string, known: string | undefined): { domain: string; rest: string } {
  const domain = known ?? metricKey.slice(0, nextDot(metricKey, 0));
  return { domain, rest: metricKey.slice(domain.length + 1) };
}

/** The key being read, and how many steps are left. */
interface Reading {
  readonly text: string;
  left: number;
}

/** The levels from here to the end, where rules of this table match. */
function levelsFrom(
  reading: Reading,
  from: number,
  table: ReadonlyMap<string, LevelRules>,
): string[] | undefined {
  const { text } = reading;
  for (let end = from; end <= text.length; end++) {
    const mark = text[end];
    if (mark !== undefined && mark !== "." && mark !== "_") continue;
    if (reading.left-- <= 0) return undefined;
    const rules = table.get(text.slice(from, end));
    const levels = rules === undefined ? undefined : levelsAt(reading, { from, keyEnd: end, rules });
    if (levels !== undefined) return levels;
  }
  return undefined;
}

/** The same, where the key of the first level ends at `keyEnd`. */
function levelsAt(
  reading: Reading,
  { from, keyEnd, rules }: { readonly from: number; readonly keyEnd: number; readonly rules: LevelRules },
): string[] | undefined {
  const { text } = reading;
  const hasValue = text[keyEnd] === "_";
  // A value ends at any dot; without one, the key itself ends the level.
  for (let end = hasValue ? nextDot(text, keyEnd) : keyEnd;; end = nextDot(text, end + 1)) {
    if (reading.left <= 0) return undefined;
    reading.left -= rules.expressions === undefined
      ? 1
      : 1 + Math.floor((end - keyEnd) / CHARACTERS_PER_STEP);
    const node = nodeFor(rules, text.slice(keyEnd + 1, end));
    if (end === text.length && node?.limit !== undefined) return [text.slice(from, end)];
    const below = node?.children === undefined || end === text.length
      ? undefined
      : levelsFrom(reading, end + 1, node.children);
    if (below !== undefined) return [text.slice(from, end), ...below];
    if (!hasValue || end === text.length) return undefined;
  }
}

function nodeFor(rules: LevelRules, value: string): LevelNode | undefined {
  return rules.named?.get(value)?.[0]?.node ?? rules.exact?.get(value) ?? rules.patterns?.find(value) ??
    rules.expressions?.find(value) ?? rules.keyOnly;
}

function nextDot(text: string, from: number): number {
  const dot = text.indexOf(".", from);
  return dot === -1 ? text.length : dot;
}
