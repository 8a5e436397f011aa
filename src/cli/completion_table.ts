import { settingEntries } from "../settings/table.ts";
import { allFlags, type Command, type DocumentedCommands, flagDoc } from "./command.ts";
import { OUTPUT_FORMATS } from "./output_format.ts";

/** The shells with completions. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** A word with its meaning. */
export interface Completion {
  readonly name: string;
  readonly doc: string;
}

/** A flag, and what its value is; `nothing` for a boolean flag. */
export interface CompletedFlag extends Completion {
  readonly value: "nothing" | "text" | "files" | readonly string[];
  /** Its name of one letter. */
  readonly short?: string | undefined;
}

/** The completions after some words of a command line. */
export interface CompletedPlace {
  /** The words, such as `endpoints add`; empty at the start. */
  readonly words: string;
  readonly names: readonly Completion[];
  readonly flags: readonly CompletedFlag[];
  readonly hasFiles: boolean;
}

/** Everything that a shell completes. */
export interface CompletionTable {
  readonly places: readonly CompletedPlace[];
  /** Completes `weir help settings`. */
  readonly settings: readonly string[];
}

const FILES: ReadonlySet<string> = new Set(["FILE", "DIR", "STORE"]);
/** Arguments and values that are one of a few words. */
const CHOICES: Readonly<Record<string, readonly string[]>> = { SHELL: SHELLS };

/** The table of completions of these commands. */
export function completionTable({ lone, groups }: DocumentedCommands): CompletionTable {
  const alone = lone.filter(({ words }) => !words.includes(" "));
  // A group of one command with the same word is that command.
  const grouped = groups.filter(({ commands }) => commands.some(({ words }) => words.includes(" ")));
  const single = groups.filter((group) => !grouped.includes(group)).flatMap(({ commands }) => commands);
  const start: CompletedPlace = {
    words: "",
    flags: [],
    hasFiles: false,
    names: [
      ...alone.map(({ words, doc }) => ({ name: words, doc })),
      ...groups.map(({ name, doc }) => ({ name, doc })),
    ],
  };
  const places = grouped.map(({ name, commands }) => ({
    words: name,
    flags: [],
    hasFiles: false,
    names: commands.map(({ words, doc }) => ({ name: words.slice(name.length + 1), doc })),
  }));
  const commands = [...alone, ...single, ...grouped.flatMap(({ commands }) => commands)];
  return {
    places: [start, ...places, ...commands.map(placeOf)],
    settings: settingEntries().map(([name]) => name).filter((name) => !name.includes("<")),
  };
}

function placeOf(command: Command): CompletedPlace {
  const { words, args, formats = OUTPUT_FORMATS } = command;
  const names = args.flatMap((arg) => CHOICES[arg] ?? []).map((name) => ({ name, doc: "" }));
  return {
    words,
    names,
    hasFiles: args.some((arg) => FILES.has(arg)),
    flags: Object.entries(allFlags(command)).map(([name, flag]) => {
      return {
        name: `--${name}`,
        doc: flagDoc(flag),
        value: valueOf(flag.value, formats),
        short: flag.short,
      };
    }),
  };
}

function valueOf(placeholder: string | undefined, formats: readonly string[]): CompletedFlag["value"] {
  if (placeholder === undefined) return "nothing";
  if (placeholder === "FORMAT") return formats;
  return CHOICES[placeholder] ?? (FILES.has(placeholder) ? "files" : "text");
}

/** The names of the flags with such a value. */
export function flagsWith({ flags }: CompletedPlace, kind: "text" | "files"): readonly string[] {
  return flags.filter(({ value }) => value === kind).flatMap(namesOf);
}

/** The flags with a few words as their values, each as `--name=word,word`. */
export function choicesOf({ flags }: CompletedPlace): readonly string[] {
  return flags.flatMap((flag) => {
    const { value } = flag;
    return typeof value === "object" ? namesOf(flag).map((name) => `${name}=${value.join(",")}`) : [];
  });
}

function namesOf({ name, short }: CompletedFlag): string[] {
  return short === undefined ? [name] : [name, `-${short}`];
}

/** A text in single quotes for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
