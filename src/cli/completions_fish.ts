import type { CompletedFlag, CompletedPlace, Completion, CompletionTable } from "./completion_table.ts";

/** The completions of fish 3 and later. */
export function fishScript({ places, settings }: CompletionTable): string {
  return `# fish completion for weir: weir completions fish | source
function __weir_at
  set -l given (commandline -opc)
  set -e given[1]
  if test "$given[1]" = help
    test "$argv[2]" = command; and return 1
    set -e given[1]
  end
  set -l place
  for word in $given[1..2]
    string match -q -- '-*' $word; and break
    set place $place $word
  end
  string match -qr -- $argv[1] "$place"
end
complete -c weir -f
${places.flatMap(linesOf).join("\n")}
complete -c weir -n "__weir_at '^settings\\$'; and string match -q 'weir help *' (commandline -c)" -a ${
    quoted(settings.join(" "))
  }`;
}

function linesOf(place: CompletedPlace): string[] {
  const { words, names, flags, hasFiles } = place;
  const isCommand = flags.length > 0;
  // A command of one word also matches with its first argument.
  const end = isCommand && !words.includes(" ") ? "( |\\$)" : "\\$";
  const condition = `-n "__weir_at '^${words}${end}'${isCommand ? " command" : ""}"`;
  const start = `complete -c weir ${condition}`;
  return [
    ...names.map((name) => `${start} -a ${quoted(name.name)}${described(name)}`),
    ...flags.map((flag) => `${start} ${namesOf(flag)}${valueOf(flag)}${described(flag)}`),
    ...hasFiles ? [`${start} -F`] : [],
  ];
}

function namesOf({ name, short }: CompletedFlag): string {
  return `-l ${name.slice(2)}${short === undefined ? "" : ` -s ${short}`}`;
}

function valueOf({ value }: CompletedFlag): string {
  if (value === "nothing") return "";
  if (value === "files") return " -r -F";
  return value === "text" ? " -x" : ` -x -a ${quoted(value.join(" "))}`;
}

function described({ doc }: Completion): string {
  return doc === "" ? "" : ` -d ${quoted(doc)}`;
}

/** A text in single quotes; fish reads backslashes there. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}
