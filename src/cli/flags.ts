import { editDistance } from "../base/edit_distance.ts";
import { duration, parseBoolean } from "../settings/parsers.ts";
import type { Parser } from "../settings/setting.ts";

/** The values of a flag: one text, a text for each time it is given, or true and false. */
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

/**
 * Parses a command line in the syntax of Go: `-name value`, `-name=value`, `-name` for booleans, one dash or two; a name
 * may have underscores for its dashes. The value of a flag may begin with a dash. Flags and arguments may mix, and `--`
 * ends the flags. The last of a repeated "string" or "boolean" counts. `aliases` maps further names. Throws `FlagError`
 * for unknown flags and for missing or wrong values.
 */
export function parseFlags(
  args: readonly string[],
  spec: Readonly<Record<string, FlagKind>>,
  aliases: Readonly<Record<string, string>> = {},
): ParsedFlags {
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
    const [, given = "", attached] = match;
    const { name, kind } = flagOf(given, spec, aliases);
    if (kind === "boolean") {
      flags[name] = readFlag(name, attached ?? "true", parseBoolean);
      continue;
    }
    const value = attached ?? queue.shift();
    if (value === undefined) throw new FlagError(`Flag --${name} requires a value`);
    flags[name] = kind === "string" ? value : [...listed(flags[name]), value];
  }
  return { flags, rest };
}

/** Returns whether the flags of a command line with `HELP_FLAGS` ask for help. */
export function asksForHelp(flags: ParsedFlags["flags"]): boolean {
  return flags["help"] === true || flags["h"] === true;
}

/** The milliseconds of a timeout, within the range of a timer. */
export const parseTimeout: Parser<number> = duration({ min: "1ms", max: "24h" });

/** Reads the value of a flag; throws a `FlagError` for one that the parser rejects. */
export function readFlag<T>(name: string, text: string, parse: Parser<T>): T {
  const parsed = parse(text);
  if ("value" in parsed) return parsed.value;
  throw new FlagError(`Invalid --${name} "${text}": expected ${parsed.expected}`);
}

/** A header written as `Name: value`; undefined for another text. */
export function headerOf(text: string): readonly [name: string, value: string] | undefined {
  const [, name, value] = /^([^:\s]+):\s*(.*\S)\s*$/.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

function flagOf(
  given: string,
  spec: Readonly<Record<string, FlagKind>>,
  aliases: Readonly<Record<string, string>>,
): { name: string; kind: FlagKind } {
  const dashed = given.replaceAll("_", "-");
  const name = Object.hasOwn(aliases, dashed) ? aliases[dashed] ?? dashed : dashed;
  const kind = Object.hasOwn(spec, name) ? spec[name] : undefined;
  if (kind !== undefined) return { name, kind };
  const nearest = nearestName(dashed, Object.keys(spec));
  const advice = nearest === undefined ? "" : `; did you mean --${nearest}?`;
  throw new FlagError(`Unknown flag --${given}${advice}`);
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
