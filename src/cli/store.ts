import { errorText } from "../base/error_text.ts";
import { isPostgresAddress } from "../base/postgres_address.ts";
import {
  CommandError,
  type CommandFlag,
  type CommandOptions,
  environmentSecret,
  type GivenCommand,
  type GivenFlags,
  type RunnableCommand,
} from "./command.ts";
import { FlagError } from "./flags.ts";

const FILE: CommandFlag = {
  value: "FILE",
  doc: "database file of the webhook service (default $WEBHOOK_STORE)",
};
const STORE: CommandFlag = {
  value: "STORE",
  doc: "database file of the webhook service, or postgres://… (default $WEBHOOK_STORE)",
};

/** `weir store …`: commands on the database itself. */
export const STORE_COMMANDS: readonly RunnableCommand[] = [
  {
    command: {
      words: "store backup",
      args: ["FILE"],
      doc: "copy the database file to a new file, even while the service runs",
      flags: { store: FILE },
      notes:
        "The encryption key is not copied. Back up WEBHOOK_ENCRYPTION_KEY, or the key file next to the store,\n" +
        "separately: without it, the secrets in the copy cannot be decrypted.\n" +
        "Back up a PostgreSQL store with pg_dump.\n\n" +
        "Exit code: 0 copied, 1 failed, 2 invalid usage.",
    },
    run: backup,
  },
  {
    command: {
      words: "store check",
      args: [],
      doc: "check the integrity of the store",
      flags: { store: STORE },
      notes: "Exit code: 0 no damage, 1 damage or no access to the store, 2 invalid usage.",
    },
    run: check,
  },
  {
    command: {
      words: "store move",
      args: [],
      doc: "copy a store from a file to PostgreSQL or back, and compare the copy with the original",
      flags: {
        from: { value: "STORE", doc: "source, which is not changed (default $WEBHOOK_STORE)" },
        to: {
          value: "STORE",
          doc: "target, an empty database or a new file (default $WEBHOOK_STORE)",
        },
      },
      notes: "Stop every service that uses the store first. One of the two is a file, the other\n" +
        "postgres://user:password@host/database. Set an address with a password in WEBHOOK_STORE: other users of\n" +
        "this machine can read the command line.\n" +
        "After an interruption, run the command again: it starts over, and no service opens an incomplete target.\n" +
        "The encryption key is not copied: set it for the target.\n\n" +
        "Exit code: 0 copied, 1 failed, 2 invalid usage.",
    },
    run: move,
  },
];

async function backup(
  { args: [target = ""], flags }: GivenCommand,
  options: CommandOptions,
): Promise<number> {
  const path = storeOf(flags, "store", options);
  if (isPostgresAddress(path)) {
    throw new CommandError(
      "Cannot copy a store in PostgreSQL: use pg_dump or other means of PostgreSQL",
    );
  }
  const { backupStore } = await import("../webhooks/store/maintenance/backup.ts");
  const { bytes, schemaVersion } = await reported(() => backupStore(path, target));
  options.output.stdout(`${target}: ${bytes} bytes, schema version ${schemaVersion}`);
  options.output.stderr("The copy does not contain the encryption key: back up the key separately");
  return 0;
}

async function check({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const store = storeOf(flags, "store", options);
  const { checkStore } = await import("../webhooks/store/maintenance/check.ts");
  const { shown, problems, schemaVersion, bytes, counts } = await reported(() => checkStore(store));
  const { stdout, stderr } = options.output;
  for (const problem of problems) stderr(`${shown}: ${problem}`);
  for (const [table, count] of Object.entries(counts)) stdout(`${shown}: ${count} rows of ${table}`);
  const verdict = problems.length === 0 ? "intact" : `damaged, problems found: ${problems.length}`;
  stdout(`${shown}: ${verdict}, ${bytes} bytes, schema version ${schemaVersion}`);
  return problems.length === 0 ? 0 : 1;
}

async function move({ flags }: GivenCommand, { output, ...options }: CommandOptions): Promise<number> {
  if (flags.text("from") === undefined && flags.text("to") === undefined) {
    throw new FlagError('Cannot run "store move": --from or --to is missing');
  }
  const [from, to] = [storeOf(flags, "from", options), storeOf(flags, "to", options)];
  const { moveStore } = await import("../webhooks/store/maintenance/move.ts");
  const moved = await reported(() => moveStore({ from, to, clock: options.clock, tell: output.stderr }));
  for (const line of notesOf(moved)) output.stderr(line);
  const { shown, rows, tables, wasThere } = moved;
  const done = `${wasThere ? "held" : "holds"} all ${rows} rows of the source${wasThere ? " already" : ""}`;
  output.stdout(`${shown}: ${done}, in ${tables} tables, compared by counts and SHA-256`);
  return 0;
}

function notesOf(
  { keyFile, replaced }: { readonly keyFile: string | undefined; readonly replaced: number },
): readonly string[] {
  const lines = replaced === 0
    ? []
    : [`${replaced} texts held U+0000, which PostgreSQL does not allow: replaced by U+FFFD`];
  lines.push(
    keyFile === undefined
      ? "The encryption key is not moved: keep WEBHOOK_ENCRYPTION_KEY and WEBHOOK_ENCRYPTION_KEY_FILE as they are"
      : `The encryption key is not moved: set WEBHOOK_ENCRYPTION_KEY_FILE to ${keyFile}, or add its key to ` +
        "WEBHOOK_ENCRYPTION_KEY, for every instance",
  );
  return lines;
}

/** A failure of the store as a `CommandError`. */
async function reported<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CommandError(errorText(error), { cause: error });
  }
}

function storeOf(
  flags: GivenFlags,
  name: string,
  { environment }: Pick<CommandOptions, "environment">,
): string {
  const store = flags.text(name) ?? environmentSecret(environment, "WEBHOOK_STORE") ?? "";
  if (store !== "") return store;
  throw new FlagError(`Cannot find the store: set WEBHOOK_STORE or --${name}`);
}
