import { errorText } from "../base/error_text.ts";
import type { CommandFlag, GivenCommand, RunnableCommand } from "./command.ts";
import { CommandError, type CommandOptions } from "./command_input.ts";
import { FlagError } from "./flags.ts";

const STORE: CommandFlag = {
  value: "FILE",
  doc: "database file of the webhook service (default $WEBHOOK_STORE)",
};

/** `weir store …`: what is done to the database file itself. */
export const STORE_COMMANDS: readonly RunnableCommand[] = [
  {
    command: {
      words: "store backup",
      args: ["FILE"],
      doc: "copies the store into a new file, in the state of one moment, also while the service runs",
      flags: { store: STORE },
      notes:
        "The encryption key is not copied: keep WEBHOOK_ENCRYPTION_KEY, or the key file beside the store,\n" +
        "in another place. Without it the secrets in the copy cannot be read.",
    },
    run: backup,
  },
  {
    command: {
      words: "store check",
      args: [],
      doc: "looks whether the store is whole",
      flags: { store: STORE },
      notes: "exit code: 1 when something is wrong",
    },
    run: check,
  },
];

async function backup(
  { args: [target = ""], flags }: GivenCommand,
  options: CommandOptions,
): Promise<number> {
  const path = storePath(flags.text("store"), options);
  const { backupStore } = await import("../webhooks/sqlite_store_backup.ts");
  const { bytes, schemaVersion } = await told(() => backupStore(path, target));
  options.output.stdout(`${target}: ${bytes} bytes, schema version ${schemaVersion}`);
  options.output.stderr("The encryption key is not in the copy: keep it in another place");
  return 0;
}

async function check({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const path = storePath(flags.text("store"), options);
  const { checkStore } = await import("../webhooks/sqlite_store_backup.ts");
  const { problems, schemaVersion, bytes, counts } = await told(() => checkStore(path));
  const { stdout, stderr } = options.output;
  for (const problem of problems) stderr(`${path}: ${problem}`);
  for (const [table, count] of Object.entries(counts)) stdout(`${path}: ${count} rows of ${table}`);
  const verdict = problems.length === 0 ? "good" : `not good: ${problems.length} found`;
  stdout(`${path}: ${verdict}, ${bytes} bytes, schema version ${schemaVersion}`);
  return problems.length === 0 ? 0 : 1;
}

/** What the store says of a failure is a line for people already. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CommandError(errorText(error), { cause: error });
  }
}

function storePath(given: string | undefined, { environment }: CommandOptions): string {
  const path = given ?? environment["WEBHOOK_STORE"] ?? "";
  if (path !== "") return path;
  throw new FlagError("Cannot find the store: WEBHOOK_STORE is not set, and no -store is named");
}
