import { editDistance } from "../base/edit_distance.ts";

/** How the value of a flag is read: one text, a text for each time it is given, or true and false. */
export type FlagKind = "string" | "strings" | "boolean";

/** What a command line said; flags that were not given are absent. */
export interface ParsedFlags {
  readonly flags: Record<string, string | boolean | string[] | undefined>;
  /** The arguments that are no flags, in order. */
  readonly rest: string[];
}

/** A command line that cannot be read; the message is meant for the person who typed it. */
export class FlagError extends Error {
  override readonly name = "FlagError";
}

/** The flags by which every command tells its usage. */
export const HELP_FLAGS = { help: "boolean", h: "boolean" } as const;

const TRUE_WORDS = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE_WORDS = ["0", "f", "F", "FALSE", "false", "False"];

/**
 * Reads a command line in Go's manner: `-name value`, `-name=value`, `-name` alone for booleans, one
 * dash or two. The value of a flag is the next argument even if it begins with a dash. Flags and other
 * arguments may mix, and `--` ends the flags. The last of a repeated "string" or "boolean" counts.
 * Throws `FlagError` for flags that `spec` does not name and for values that are missing or wrong.
 */
export function parseFlags(args: readonly string[], spec: Readonly<Record<string, FlagKind>>): ParsedFlags {
  const flags: ParsedFlags["flags"] = {};
  const rest: string[] = [];
  const queue = [...args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === "--") {
      rest.push(...queue);
      break;
    }
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg);
    if (match === null) {
      if (arg.startsWith("-") && arg !== "-") {
        throw new FlagError(`Cannot read flag "${arg}": it has no name`);
      }
      rest.push(arg);
      continue;
    }
    const [, name = "", attached] = match;
    const kind = kindOf(name, spec);
    if (kind === "boolean") {
      flags[name] = booleanOf(name, attached ?? "true");
      continue;
    }
    const value = attached ?? queue.shift();
    if (value === undefined) throw new FlagError(`Cannot read flag "-${name}": its value is missing`);
    flags[name] = kind === "string" ? value : [...listed(flags[name]), value];
  }
  return { flags, rest };
}

/** Whether the usage was asked for; `flags` come from a command line that knows `HELP_FLAGS`. */
export function asksForHelp(flags: ParsedFlags["flags"]): boolean {
  return flags["help"] === true || flags["h"] === true;
}

function kindOf(name: string, spec: Readonly<Record<string, FlagKind>>): FlagKind {
  const kind = Object.hasOwn(spec, name) ? spec[name] : undefined;
  if (kind !== undefined) return kind;
  const nearest = nearestName(name, Object.keys(spec));
  const advice = nearest === undefined ? "" : `, did you mean "-${nearest}"?`;
  throw new FlagError(`Cannot read flag "-${name}": there is no such flag${advice}`);
}

function booleanOf(name: string, text: string): boolean {
  if (TRUE_WORDS.includes(text)) return true;
  if (FALSE_WORDS.includes(text)) return false;
  throw new FlagError(`Cannot read flag "-${name}": "${text}" is neither "true" nor "false"`);
}

function listed(value: string | boolean | string[] | undefined): string[] {
  return Array.isArray(value) ? value : [];
}

// A name that differs in more than half of its letters is another word, not a slip of the finger.
function nearestName(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= best.candidate.length / 2 ? best.candidate : undefined;
}
