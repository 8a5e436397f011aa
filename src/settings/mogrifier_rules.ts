/** The settings that the rules of mogrifiers read. A member of a family that could not be read is undefined. */
export interface MogrifierProblemSettings {
  readonly USE_TAGGED_PUSH_STATS: boolean;
  readonly TAGGED_PUSH_STATS_MOGRIFIERS: readonly string[];
  readonly USE_TAGGED_PUSH_STATS_MOGRIFIERS: readonly string[];
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": ReadonlyMap<string, unknown>;
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": ReadonlyMap<string, unknown>;
  readonly "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": ReadonlyMap<
    string,
    ReadonlyMap<string, string> | undefined
  >;
}

const LISTS = ["TAGGED_PUSH_STATS_MOGRIFIERS", "USE_TAGGED_PUSH_STATS_MOGRIFIERS"] as const;
const PARTS = ["PATTERN", "NAME", "TAGS"] as const;
type Part = typeof PARTS[number];
const RIGHT = {
  PATTERN: "a regular expression",
  NAME: "the name that statistics get",
} as const;

/** What is wrong with the mogrifiers of tagged push, a sentence each; nothing while it is off. */
export function mogrifierProblems(settings: MogrifierProblemSettings): string[] {
  if (!settings.USE_TAGGED_PUSH_STATS) return [];
  const told = new Set<string>();
  return LISTS.flatMap((list) =>
    settings[list].flatMap((word) => {
      if (told.has(word)) return [];
      told.add(word);
      return problemsOf(settings, list, word);
    })
  );
}

function problemsOf(settings: MogrifierProblemSettings, list: string, word: string): string[] {
  // A list may name in small letters what the variables have in capitals.
  const member = PARTS.some((part) => hasPart(settings, word, part)) ? word : word.toUpperCase();
  const missing = (["PATTERN", "NAME"] as const).filter((part) => !hasPart(settings, member, part));
  if (missing.length === 2) {
    return [
      `Cannot use ${list} "${word}": no mogrifier has this name; ${variable(member, "PATTERN")} and ` +
      `${variable(member, "NAME")} beside it would be right`,
    ];
  }
  const [part] = missing;
  const unset = part === undefined
    ? []
    : [`Cannot use ${list} "${word}": ${variable(member, part)} is not set; ${RIGHT[part]} would be right`];
  return [...unset, ...tagProblems(settings, member)];
}

function tagProblems(settings: MogrifierProblemSettings, member: string): string[] {
  const tags = settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS"].get(member);
  const empty = [...tags ?? []].find(([key, value]) => key === "" || value === "");
  if (empty === undefined) return [];
  const text = JSON.stringify(empty.join(":"));
  return [
    `Cannot use ${variable(member, "TAGS")} ${text}: its ${empty[0] === "" ? "key" : "value"} is empty; ` +
    "key:value would be right",
  ];
}

function hasPart(settings: MogrifierProblemSettings, member: string, part: Part): boolean {
  return settings[`TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_${part}`].has(member);
}

function variable(member: string, part: Part): string {
  return `TAGGED_PUSH_STATS_MOGRIFIER_${member}_${part}`;
}
