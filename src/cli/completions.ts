import type { DocumentedCommands } from "./command.ts";
import { completionTable, type SHELLS } from "./completion_table.ts";
import { bashScript } from "./completions_bash.ts";
import { fishScript } from "./completions_fish.ts";
import { zshScript } from "./completions_zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** The script that completes the commands in a shell. */
export function completionScript(shell: typeof SHELLS[number], table: DocumentedCommands): string {
  return SCRIPTS[shell](completionTable(table));
}
