import { errorText } from "../base/error_text.ts";
import { isPostgresAddress } from "../base/postgres_address.ts";
import type { CommandFlag, GivenCommand, GivenFlags, RunnableCommand } from "./command.ts";
import { CommandError, type CommandOptions } from "./command_input.ts";
import { FlagError } from "./flags.ts";

const FILE: CommandFlag = {
  value: "FILE",
  doc: "database file of the webhook service (default $WEBHOOK_STORE)",
};
const STORE: CommandFlag = {
  value: "STORE",
  doc: "database file of the webhook service, or postgres://… (default $WEBHOOK_STORE)",
};

/** `weir store …`: what is done to the database itself. */
export const STORE_COMMANDS: readonly RunnableCommand[] = [
  {
    command: {
      words: "store backup",
      args: ["FILE"],
      doc: "copies the store into a new file, in the state of one moment, also while the service runs",
      flags: { store: FILE },
      notes:
        "The encryption key is not copied: keep WEBHOOK_ENCRYPTION_KEY, or the key file beside the store,\n" +
        "in another place. Without it the secrets in the copy cannot be read.\n" +
        "A store in PostgreSQL is copied by PostgreSQL's own means, such as pg_dump.",
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
  {
    command: {
      words: "store move",
      args: [],
      doc: "copies a store that no service uses from a file to PostgreSQL or back, and compares the two",
      flags: {
        from: { value: "STORE", doc: "what is copied, and stays as it is (default $WEBHOOK_STORE)" },
        to: {
          value: "STORE",
          doc: "an empty database, or a file that is not there (default $WEBHOOK_STORE)",
        },
      },
      notes: "One of the two is a file, the other postgres://user:password@host/database. An address in\n" +
        "WEBHOOK_STORE is not seen by others on this machine, as those of the command line are.\n" +
        "Called again after it was broken off, it begins anew; until its end no service opens the target.\n" +
        "The encryption key is not copied: what seals the secrets has to be set where they go.",
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
      "Cannot copy a store in PostgreSQL: pg_dump, or another means of PostgreSQL itself, would be right",
    );
  }
  const { backupStore } = await import("../webhooks/store/maintenance/backup.ts");
  const { bytes, schemaVersion } = await told(() => backupStore(path, target));
  options.output.stdout(`${target}: ${bytes} bytes, schema version ${schemaVersion}`);
  options.output.stderr("The encryption key is not in the copy: keep it in another place");
  return 0;
}

async function check({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const store = storeOf(flags, "store", options);
  const { checkStore } = await import("../webhooks/store/maintenance/check.ts");
  const { shown, problems, schemaVersion, bytes, counts } = await told(() => checkStore(store));
  const { stdout, stderr } = options.output;
  for (const problem of problems) stderr(`${shown}: ${problem}`);
  for (const [table, count] of Object.entries(counts)) stdout(`${shown}: ${count} rows of ${table}`);
  const verdict = problems.length === 0 ? "good" : `not good: ${problems.length} found`;
  stdout(`${shown}: ${verdict}, ${bytes} bytes, schema version ${schemaVersion}`);
  return problems.length === 0 ? 0 : 1;
}

async function move({ flags }: GivenCommand, { output, ...options }: CommandOptions): Promise<number> {
  if (flags.text("from") === undefined && flags.text("to") === undefined) {
    throw new FlagError("Cannot move the store: neither -from nor -to is named");
  }
  const [from, to] = [storeOf(flags, "from", options), storeOf(flags, "to", options)];
  const { moveStore } = await import("../webhooks/store/maintenance/move.ts");
  const moved = await told(() => moveStore({ from, to, clock: options.clock, tell: output.stderr }));
  for (const line of notesOf(moved)) output.stderr(line);
  const { shown, rows, tables, wasThere } = moved;
  const done = `${wasThere ? "held" : "holds"} all ${rows} rows of the source${wasThere ? " already" : ""}`;
  output.stdout(`${shown}: ${done}, in ${tables} tables, compared by counts and SHA-256`);
  return 0;
}

/** What is to be done beside. */
function notesOf(
  { keyFile, replaced }: { readonly keyFile: string | undefined; readonly replaced: number },
): readonly string[] {
  const lines = replaced === 0
    ? []
    : [`${replaced} texts held U+0000, which PostgreSQL does not take: U+FFFD stands there now`];
  lines.push(
    keyFile === undefined
      ? "The encryption key is not moved: WEBHOOK_ENCRYPTION_KEY and WEBHOOK_ENCRYPTION_KEY_FILE have to stay as they are"
      : `The encryption key is not moved: name ${keyFile} in WEBHOOK_ENCRYPTION_KEY_FILE, or add what it holds to ` +
        "WEBHOOK_ENCRYPTION_KEY, of every instance",
  );
  return lines;
}

/** What the store says of a failure is a line for people already. */
async function told<T>(work: () => Promise<T>): Promise<T> {
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
  const store = flags.text(name) ?? environment["WEBHOOK_STORE"] ?? "";
  if (store !== "") return store;
  throw new FlagError(`Cannot find the store: WEBHOOK_STORE is not set, and no -${name} is named`);
}
