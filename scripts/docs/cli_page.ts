import {
  callOf,
  type Command,
  type CommandFlag,
  type CommandGroup,
  exitCodesOf,
  flagDoc,
  flagText,
  sentenceOf,
} from "../../src/cli/command.ts";
import { EXAMPLES } from "../../src/cli/examples.ts";
import { documentedCommands } from "../../src/cli/commands.ts";
import { CLI_EXAMPLES, CLI_HEAD, GROUP_HEADS } from "./cli_texts.ts";
import { table } from "./generated_page.ts";

type Flags = Readonly<Record<string, CommandFlag>>;

/** docs/cli.md. */
export function cliPage(): string {
  const { lone, groups } = documentedCommands();
  const calls = groups.filter(({ name }) => !isLocal(name));
  return [
    CLI_HEAD,
    exitCodeTable([...lone, ...groups.flatMap(({ commands }) => commands)]),
    "## Commands",
    commandTable(lone),
    ...lone.flatMap((command) => {
      const parts = [...flagTable(command.flags), ...notes(command), ...example(command.words)];
      return parts.length === 0 ? [] : [`### weir ${command.words}`, ...parts];
    }),
    GROUP_HEADS.administration,
    ...flagTable(callFlags(groups)),
    GROUP_HEADS.lists,
    ...flagTable(listFlags(groups)),
    ...calls.flatMap((group) => groupSection(group, groups)),
    GROUP_HEADS.local,
    ...groups.filter(({ name }) => isLocal(name)).flatMap((group) => groupSection(group, groups)),
  ].join("\n\n");
}

/** Returns whether a group calls no administration API. */
function isLocal(group: string): boolean {
  return ["settings", "webhooks", "store"].includes(group);
}

function groupSection({ name, doc, commands }: CommandGroup, groups: readonly CommandGroup[]): string[] {
  const shared = isLocal(name) ? {} : {
    ...callFlags(groups),
    ...listFlags(groups),
  };
  const details = commands.flatMap((command) => {
    const isList = Object.hasOwn(command.flags, "cursor");
    const own = Object.entries(command.flags).filter(([flag]) =>
      !Object.hasOwn(shared, flag) || (!isList && ["since", "until"].includes(flag))
    );
    const parts = [...flagTable(Object.fromEntries(own)), ...notes(command)];
    return parts.length === 0 ? [] : [`**\`weir ${callOf(command)}\`**`, ...parts];
  });
  const examples = helpExamples(commands);
  return [
    `### weir ${name}`,
    sentenceOf(doc),
    commandTable(commands),
    examples,
    ...details,
    ...example(name),
  ];
}

function callsOf(groups: readonly CommandGroup[]): Command[] {
  return groups.flatMap(({ commands }) => commands).filter(({ flags }) => "token-file" in flags);
}

/** The flags that every one of the commands has. */
function commonFlags(commands: readonly Command[]): Flags {
  const [first, ...others] = commands;
  const flags = Object.entries(first?.flags ?? {});
  return Object.fromEntries(
    flags.filter(([name]) => others.every((command) => Object.hasOwn(command.flags, name))),
  );
}

/** The flags of every command that calls the administration API. */
function callFlags(groups: readonly CommandGroup[]): Flags {
  return commonFlags(callsOf(groups));
}

/** The flags that only lists share: those of every list of records, without those of every command. */
function listFlags(groups: readonly CommandGroup[]): Flags {
  const every = callFlags(groups);
  const lists = commonFlags(callsOf(groups).filter(({ flags }) => "cursor" in flags && "since" in flags));
  return Object.fromEntries(Object.entries(lists).filter(([name]) => !Object.hasOwn(every, name)));
}

const USUAL_EXIT_CODES = [
  "The command succeeded.",
  "The command failed, or the service rejected it.",
  "The usage is invalid: an unknown command or flag, or a missing or invalid value.",
];

/** The exit codes of every command; those with the usual codes share a row. */
function exitCodeTable(commands: readonly Command[]): string {
  const rows = commands.flatMap((command) => {
    const codes = exitCodesOf(command);
    return codes === undefined ? [] : [{ call: `\`${command.words}\``, codes }];
  });
  const most = Math.max(...rows.flatMap(({ codes }) => Object.keys(codes).map(Number)));
  const numbers = Array.from({ length: most + 1 }, (_, code) => code);
  return table(["Command", ...numbers.map(String)], [
    ...rows.map(({ call, codes }) => [call, ...numbers.map((code) => textOf(codes[code]))]),
    ["All other commands", ...numbers.map((code) => USUAL_EXIT_CODES[code] ?? "-")],
  ]);
}

function textOf(meaning: string | undefined): string {
  return meaning === undefined ? "-" : markdown(sentenceOf(meaning));
}

function commandTable(commands: readonly Command[]): string {
  const rows = commands.map((command) => [
    `\`weir ${callOf(command)}\``,
    markdown(sentenceOf(command.doc)),
  ]);
  return table(["Command", "Meaning"], rows);
}

function flagTable(flags: Flags): string[] {
  const rows = Object.entries(flags).map(([name, flag]) => [
    `\`${flagText(name, flag)}\``,
    markdown(sentenceOf(flagDoc(flag))),
  ]);
  return rows.length === 0 ? [] : [table(["Flag", "Meaning"], rows)];
}

function notes({ notes = "" }: Command): string[] {
  return notes.split("\n\n").filter((paragraph) => paragraph !== "").map(markdown);
}

/** The examples of the help of a group. */
function helpExamples(commands: readonly Command[]): string {
  const lines = commands.map(({ words }) => `weir ${words} ${EXAMPLES[words] ?? ""}`.trimEnd());
  return ["```text", ...lines, "```"].join("\n");
}

function example(name: string): string[] {
  const text = CLI_EXAMPLES[name];
  return text === undefined ? [] : [text];
}

/** Parts of plain texts that are code in Markdown: commands, settings, flags, URLs, paths and patterns. */
const CODE = new RegExp(
  [
    '"weir [^"]+"',
    "\\$?\\b[A-Z]+(?:_[A-Z]+)+\\b(?:=[a-z]+)?",
    "\\bPOST /[a-z]+",
    "(?<=\\s)--[a-z][a-z_-]*(?: '[^']+')?",
    "(?<=[\\s(])-(?= for)",
    "(?<=\\s)/[a-z]+\\b",
    "\\{\\{.*?\\}\\}",
    "(?<=\\s)(?:[a-z]+\\.)?\\*(?=[,;.\\s)])",
    "\\b(?:http|postgres)://[^\\s),]+(?<!\\.)",
  ].join("|"),
  "g",
);

/** Plain text as Markdown. */
function markdown(text: string): string {
  return text.replaceAll(CODE, (code) => `\`${code.replaceAll('"', "")}\``);
}
