import type { Settings } from "./table.ts";

type MogrifierSettings = Pick<
  Settings,
  | "USE_TAGGED_PUSH_STATS"
  | typeof LISTS[number]
  | `TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_${Part}`
>;

const LISTS = ["TAGGED_PUSH_STATS_MOGRIFIERS", "USE_TAGGED_PUSH_STATS_MOGRIFIERS"] as const;
const PARTS = ["PATTERN", "NAME", "TAGS"] as const;
type Part = typeof PARTS[number];
const EXPECTED = {
  PATTERN: "a regular expression",
  NAME: "the name that statistics get",
} as const;

/** The problems of the mogrifiers of tagged push, a sentence each; none while it is off. */
export function mogrifierProblems(settings: MogrifierSettings): string[] {
  if (!settings.USE_TAGGED_PUSH_STATS) return [];
  const seen = new Set<string>();
  return LISTS.flatMap((list) =>
    settings[list].flatMap((word) => {
      if (seen.has(word)) return [];
      seen.add(word);
      return problemsOf(settings, list, word);
    })
  );
}

function problemsOf(settings: MogrifierSettings, list: string, word: string): string[] {
  // A list may name a mogrifier in small letters.
  const member = PARTS.some((part) => hasPart(settings, word, part)) ? word : word.toUpperCase();
  const missing = (["PATTERN", "NAME"] as const).filter((part) => !hasPart(settings, member, part));
  if (missing.length === 2) {
    return [
      `Invalid ${list} "${word}": no mogrifier has this name; expected ${variable(member, "PATTERN")} and ` +
      variable(member, "NAME"),
    ];
  }
  const [part] = missing;
  const unset = part === undefined
    ? []
    : [`Invalid ${list} "${word}": ${variable(member, part)} is not set; expected ${EXPECTED[part]}`];
  return [...unset, ...tagProblems(settings, member)];
}

function tagProblems(settings: MogrifierSettings, member: string): string[] {
  const tags = settings["TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS"].get(member);
  const empty = [...tags ?? []].find(([key, value]) => key === "" || value === "");
  if (empty === undefined) return [];
  const text = JSON.stringify(empty.join(":"));
  return [
    `Invalid ${variable(member, "TAGS")} ${text}: its ${empty[0] === "" ? "key" : "value"} is empty; ` +
    "expected key:value",
  ];
}

function hasPart(settings: MogrifierSettings, member: string, part: Part): boolean {
  return settings[`TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_${part}`].has(member);
}

function variable(member: string, part: Part): string {
  return `TAGGED_PUSH_STATS_MOGRIFIER_${member}_${part}`;
}
