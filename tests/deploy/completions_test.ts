import { assertEquals } from "#assert";
import { ran } from "../harness/administration_fixture.ts";
import { needs, requireTool, type Tool } from "../harness/tools.ts";

interface Case {
  /** The words before the cursor; the last one is completed. */
  readonly line: readonly string[];
  readonly found: readonly string[];
}

const CASES: Readonly<Record<string, Case>> = {
  "a command": { line: ["hea"], found: ["health"] },
  "a group": { line: ["end"], found: ["endpoints"] },
  "the commands of a group": {
    line: ["deliveries", ""],
    found: ["list", "pause", "resend", "resume", "retry", "show", "why"],
  },
  "a flag of a command": { line: ["endpoints", "add", "https://x", "--att"], found: ["--attempt-timeout"] },
  "a flag of a command of one word": { line: ["check", "--st"], found: ["--strict"] },
  "a choice": { line: ["events", "list", "--output", ""], found: ["id", "json", "table", "yaml"] },
  "a choice after a letter": { line: ["events", "list", "-o", ""], found: ["id", "json", "table", "yaml"] },
  "no names after the letter of a flag with a text": { line: ["events", "list", "-n", ""], found: [] },
  "no names where a text is expected": { line: ["client", "--domain", ""], found: [] },
  "a file, with a space in its name": { line: ["store", "backup", "one"], found: ["one file.db"] },
  "a file after a flag": { line: ["store", "check", "--store", "one"], found: ["one file.db"] },
  "no file for a flag": { line: ["store", "backup", "--sto"], found: ["--store"] },
  "a shell": { line: ["completions", "f"], found: ["fish"] },
  "a command in help": { line: ["help", "endpoints", "rot"], found: ["rotate"] },
  "a setting in help": { line: ["help", "settings", "KV_PIPELINE_W"], found: ["KV_PIPELINE_WINDOW"] },
};

const BASH = `source "$1"; shift
COMP_WORDS=(weir "$@"); COMP_CWORD=$#
_weir
printf '%s\\n' "\${COMPREPLY[@]}"`;
// Without a terminal, zsh completes nothing: its functions are replaced by ones that print what they are given.
const ZSH = `compdef() { : }
compadd() { shift; print -rl -- "$@" }
_files() { local file; for file in "\${words[CURRENT]}"*(N); do print -r -- $file; done }
_describe() { local list="\${@[-1]}"; print -rl -- "\${(@)\${(@P)list}%%:*}" }
source "$1"; shift
words=(weir "$@"); CURRENT=$#words
_weir`;
const FISH = `source $argv[1]; complete -C "$argv[2]"`;

/** The completions of a line in a real shell. */
const SHELLS: Readonly<
  Record<string, { tools: readonly Tool[]; args: (line: readonly string[]) => string[] }>
> = {
  bash: { tools: [], args: (line) => ["--noprofile", "--norc", "-c", BASH, "bash", "SCRIPT", ...line] },
  zsh: { tools: ["zsh"], args: (line) => ["-f", "-c", ZSH, "zsh", "SCRIPT", ...line] },
  fish: {
    tools: ["fish"],
    args: (line) => ["--no-config", "-c", FISH, "SCRIPT", ["weir", ...line].join(" ")],
  },
};

for (const [shell, { tools, args }] of Object.entries(SHELLS)) {
  Deno.test({
    ...needs(tools, `completions of ${shell}`),
    async fn(t) {
      const folder = await Deno.makeTempDir();
      const script = `${folder}/.script`;
      const { code, stdout } = await ran(["completions", shell]);
      assertEquals(code, 0);
      await Deno.writeTextFile(script, stdout);
      await Deno.writeTextFile(`${folder}/one file.db`, "");
      const [tool] = tools;
      const program = tool === undefined ? shell : requireTool(tool);
      for (const [name, { line, found }] of Object.entries(CASES)) {
        await t.step(`${name}: weir ${line.join(" ")}`, async () => {
          const given = args(line).map((one) => one === "SCRIPT" ? script : one);
          const env = { HOME: folder, TERM: "dumb" };
          const command = new Deno.Command(program, { args: given, cwd: folder, env });
          const ended = await command.output();
          const lines = new TextDecoder().decode(ended.stdout).split("\n");
          const last = line.at(-1) ?? "";
          const names = lines.map((one) => one.split("\t")[0]?.replaceAll("\\", "") ?? "")
            .filter((one) => one !== "" && one.startsWith(last)).toSorted();
          assertEquals([names, new TextDecoder().decode(ended.stderr)], [[...found], ""]);
        });
      }
      await Deno.remove(folder, { recursive: true });
    },
  });
}
