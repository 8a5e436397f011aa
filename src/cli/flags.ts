import { parseDuration } from "../base/duration.ts";
import { editDistance } from "../base/edit_distance.ts";

/** How the value of a flag is read: one text, a text for each time it is given, or true and false. */
export type FlagKind = "string" | "strings" | "boolean";

/** A parsed command line; flags that were not given are absent. */
export interface ParsedFlags {
  readonly flags: Record<string, string | boolean | string[] | undefined>;
  /** The other arguments, in order. */
  readonly rest: string[];
}

/** A wrong command line; the message is for the person who typed it. */
export class FlagError extends Error {
  override readonly name = "FlagError";
}

/** The help flags of every command. */
export const HELP_FLAGS = { help: "boolean", h: "boolean" } as const;

const MAX_TIMEOUT_MS = 86_400_000;
const TRUE_WORDS = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE_WORDS = ["0", "f", "F", "FALSE", "false", "False"];

/**
 * Parses a command line in the syntax of Go: `-name value`, `-name=value`, `-name` for booleans, one dash or two. The
 * value of a flag may begin with a dash. Flags and arguments may mix, and `--` ends the flags. The last of a repeated
 * "string" or "boolean" counts. Throws `FlagError` for unknown flags and for missing or wrong values.
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
        throw new FlagError(`Cannot read flag "${arg}": no name`);
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
    if (value === undefined) throw new FlagError(`Flag --${name} requires a value`);
    flags[name] = kind === "string" ? value : [...listed(flags[name]), value];
  }
  return { flags, rest };
}

/** Whether the flags of a command line with `HELP_FLAGS` ask for help. */
export function asksForHelp(flags: ParsedFlags["flags"]): boolean {
  return flags["help"] === true || flags["h"] === true;
}

/** Reads the value of a timeout flag as milliseconds; throws a `FlagError` outside the range of a timer. */
export function readTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs !== undefined && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new FlagError(`Invalid --timeout "${text}": expected a duration from 1ms to 24h, such as 10s`);
}

/** A header written as `Name: value`; undefined for another text. */
export function headerOf(text: string): readonly [name: string, value: string] | undefined {
  const [, name, value] = /^([^:\s]+):\s*(.*\S)\s*$/.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

function kindOf(name: string, spec: Readonly<Record<string, FlagKind>>): FlagKind {
  const kind = Object.hasOwn(spec, name) ? spec[name] : undefined;
  if (kind !== undefined) return kind;
  const nearest = nearestName(name, Object.keys(spec));
  const advice = nearest === undefined ? "" : `; did you mean --${nearest}?`;
  throw new FlagError(`Unknown flag --${name}${advice}`);
}

function booleanOf(name: string, text: string): boolean {
  if (TRUE_WORDS.includes(text)) return true;
  if (FALSE_WORDS.includes(text)) return false;
  throw new FlagError(`Invalid --${name} "${text}": expected true or false`);
}

function listed(value: string | boolean | string[] | undefined): string[] {
  return Array.isArray(value) ? value : [];
}

/** The known name that a name misspells; one that differs in more than half of its letters is another word. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= best.candidate.length / 2 ? best.candidate : undefined;
}
