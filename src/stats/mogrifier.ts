import { fillGroups } from "../base/pattern.ts";

/** Tags by key, in their order. */
export type StatTags = ReadonlyMap<string, string>;

/** Rewrites the statistics that its pattern matches; `$1` or `$name` in a text is a group, `$0` the whole match. */
export interface Mogrifier {
  readonly pattern: RegExp;
  readonly name: string;
  readonly tags: StatTags;
}

/** The name and tags by the first mogrifier that matches; undefined when none does. */
export function mogrify(
  mogrifiers: readonly Mogrifier[],
  statName: string,
): Pick<Mogrifier, "name" | "tags"> | undefined {
  for (const { pattern, name, tags } of mogrifiers) {
    const match = pattern.exec(statName);
    if (match === null) continue;
    const filled = [...tags].map(([key, value]) => [key, fillGroups(value, match)] as const);
    return { name: fillGroups(name, match), tags: new Map(filled) };
  }
  return undefined;
}

/** The settings of mogrifiers. */
export interface MogrifierSettings {
  readonly TAGGED_PUSH_STATS_MOGRIFIERS: readonly string[];
  readonly USE_TAGGED_PUSH_STATS_MOGRIFIERS: readonly string[];
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": ReadonlyMap<string, RegExp>;
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": ReadonlyMap<string, string>;
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": ReadonlyMap<string, StatTags>;
}

/** The mogrifiers in the order of their list, then those of its other spelling. */
export function mogrifiersOf(settings: MogrifierSettings): readonly Mogrifier[] {
  const listed = new Set([
    ...settings.TAGGED_PUSH_STATS_MOGRIFIERS,
    ...settings.USE_TAGGED_PUSH_STATS_MOGRIFIERS,
  ]);
  return [...listed].flatMap((word) => {
    const pattern = memberOf(settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN"], word);
    const name = memberOf(settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME"], word);
    const tags = memberOf(settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS"], word) ?? new Map();
    return pattern === undefined || name === undefined ? [] : [{ pattern, name, tags }];
  });
}

/** A list may have names in lower case, the variables have them in upper case. */
function memberOf<T>(family: ReadonlyMap<string, T>, word: string): T | undefined {
  return family.get(word) ?? family.get(word.toUpperCase());
}
