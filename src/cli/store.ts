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
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { Progress } from "./progress.ts";
import { storeKeys } from "./store_keys.ts";

const FILE: CommandFlag = {
  value: "FILE",
  doc: "database file of the webhook service (default $WEBHOOK_STORE)",
};
const STORE: CommandFlag = {
  value: "STORE",
  doc: "database file of the webhook service, or postgres://… (default $WEBHOOK_STORE)",
};

const COPY_EXIT_CODES = { 0: "copied", 1: "failed" };

/** `weir store …`: commands on the database itself. */
export const STORE_COMMANDS: readonly RunnableCommand[] = [
  {
    command: {
      words: "store backup",
      args: ["FILE"],
      doc: "copy the database file to a new file, even while the service runs",
      flags: { store: FILE, ...OUTPUT_FLAGS },
      notes:
        "The encryption key is not copied. Back up WEBHOOK_ENCRYPTION_KEY, or the key file next to the store,\n" +
        "separately: without it, the secrets in the copy cannot be decrypted.\n" +
        "Back up a PostgreSQL store with pg_dump.",
      exitCodes: COPY_EXIT_CODES,
    },
    run: backup,
  },
  {
    command: {
      words: "store check",
      args: [],
      doc: "check the integrity of the store, and show which encryption keys it uses",
      flags: { store: STORE, ...OUTPUT_FLAGS },
      notes: "Each key is shown by its identifier, with the number of secrets that it encrypts.",
      exitCodes: { 0: "no damage", 1: "damage or no access to the store" },
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
        ...OUTPUT_FLAGS,
      },
      notes: "Stop every service that uses the store first. One of the two is a file, the other\n" +
        "postgres://user:password@host/database. Set an address with a password in WEBHOOK_STORE: other users of\n" +
        "this machine can read the command line.\n" +
        "After an interruption, run the command again: it starts over, and no service opens an incomplete target.\n" +
        "The encryption key is not copied: set it for the target.",
      exitCodes: COPY_EXIT_CODES,
    },
    run: move,
  },
  {
    command: {
      words: "store rekey",
      args: [],
      doc: "encrypt all secrets with the first encryption key, even while the service runs",
      flags: { store: STORE, ...OUTPUT_FLAGS },
      notes:
        "The keys are those of the service: WEBHOOK_ENCRYPTION_KEY, WEBHOOK_ENCRYPTION_KEY_FILE or the key file\n" +
        "next to the store. Configure the first key on every instance before: an instance without it cannot sign.\n" +
        "After an interruption, run the command again. A secret that cannot be decrypted is not changed.",
      exitCodes: { 0: "only the first key is in use", 1: "other keys are still in use, or failed" },
    },
    run: rekey,
  },
];

async function backup(
  { args: [target = ""], flags }: GivenCommand,
  options: CommandOptions,
): Promise<number> {
  const printer = printerOf(flags, options.output);
  const path = storeOf(flags, "store", options);
  if (isPostgresAddress(path)) {
    throw new CommandError("Cannot copy a store in PostgreSQL: use pg_dump or other means of PostgreSQL", {
      isUsage: true,
    });
  }
  const { backupStore } = await import("../webhooks/store/maintenance/backup.ts");
  using progress = new Progress("copying", options);
  const { bytes, schemaVersion } = await reported(() =>
    backupStore(path, target, (share) => progress.update(`copying: ${Math.floor(share * 100)} %`))
  );
  if (printer !== undefined) printer.print({ file: target, bytes, schemaVersion });
  else options.output.stdout(`${target}: ${bytes} bytes, schema version ${schemaVersion}`);
  options.output.stderr("The copy does not contain the encryption key: back up the key separately");
  return 0;
}

async function check({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const printer = printerOf(flags, options.output);
  const store = storeOf(flags, "store", options);
  const { checkStore } = await import("../webhooks/store/maintenance/check.ts");
  using _progress = new Progress("checking", options);
  const { shown, problems, schemaVersion, bytes, counts, keys } = await reported(() => checkStore(store));
  const { stdout, stderr } = options.output;
  const known = await storeKeys(store, options).catch((error: unknown) => {
    stderr(`${shown}: the encryption keys of the service are unknown: ${errorText(error)}`);
    return undefined;
  });
  const uses = usesOf(keys, known);
  if (printer !== undefined) {
    const intact = problems.length === 0;
    printer.print({ store: shown, intact, bytes, schemaVersion, rows: counts, keys: uses, problems });
    return intact ? 0 : 1;
  }
  for (const problem of problems) stderr(`${shown}: ${problem}`);
  for (const [table, count] of Object.entries(counts)) stdout(`${shown}: ${count} rows of ${table}`);
  for (const use of uses) stdout(`${shown}: ${useText(use)}`);
  const verdict = problems.length === 0 ? "intact" : `damaged, problems found: ${problems.length}`;
  stdout(`${shown}: ${verdict}, ${bytes} bytes, schema version ${schemaVersion}`);
  return problems.length === 0 ? 0 : 1;
}

async function move({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const { output } = options;
  if (flags.text("from") === undefined && flags.text("to") === undefined) {
    throw new FlagError('Cannot run "store move": --from or --to is missing');
  }
  const printer = printerOf(flags, output);
  const [from, to] = [storeOf(flags, "from", options), storeOf(flags, "to", options)];
  const moved = await moveShown(from, to, options);
  for (const line of notesOf(moved)) output.stderr(line);
  const { shown, rows, tables, wasThere } = moved;
  if (printer !== undefined) {
    printer.print({ store: shown, rows, tables, alreadyThere: wasThere });
    return 0;
  }
  const done = `${wasThere ? "held" : "holds"} all ${rows} rows of the source${wasThere ? " already" : ""}`;
  output.stdout(`${shown}: ${done}, in ${tables} tables, compared by counts and SHA-256`);
  return 0;
}

async function moveShown(from: string, to: string, options: CommandOptions) {
  const { clock, output } = options;
  const { moveStore } = await import("../webhooks/store/maintenance/move.ts");
  using progress = new Progress("moving", options);
  const onStep = (text: string) => progress.update(text);
  return await reported(() => moveStore({ from, to, clock, onStep, tell: output.stderr }));
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

async function rekey({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const { output: { stdout, stderr }, clock } = options;
  const printer = printerOf(flags, options.output);
  const store = storeOf(flags, "store", options);
  const box = await reported(() => storeKeys(store, options));
  if (box === undefined) {
    throw new FlagError(
      "Cannot find the encryption key: set WEBHOOK_ENCRYPTION_KEY or WEBHOOK_ENCRYPTION_KEY_FILE",
    );
  }
  const { rekeyStore } = await import("../webhooks/store/maintenance/rekey.ts");
  using _progress = new Progress("encrypting secrets", options);
  const { shown, rekeyed, keys, problems } = await reported(() => rekeyStore(store, box, { clock }));
  const others = Object.keys(keys).filter((keyId) => keyId !== box.keyId).length;
  const uses = usesOf(keys, box);
  if (printer !== undefined) {
    printer.print({ store: shown, rekeyed, keys: uses, otherKeys: others, problems });
    return others === 0 ? 0 : 1;
  }
  for (const problem of problems) stderr(`${shown}: ${problem}`);
  for (const [table, count] of Object.entries(rekeyed)) {
    stdout(`${shown}: ${count} secrets of ${table} encrypted again`);
  }
  for (const use of uses) stdout(`${shown}: ${useText(use)}`);
  stdout(`${shown}: ${others === 0 ? "no other key is in use" : `other keys are still in use (${others})`}`);
  return others === 0 ? 0 : 1;
}

/** The use of a key. */
interface KeyUse {
  readonly keyId: string;
  readonly secrets: number;
  /** Its place among the keys of the service; absent where they are unknown. */
  readonly place?: string | undefined;
}

/** The keys of a store, each with its place among the keys of the service where they are known. */
function usesOf(
  keys: Readonly<Record<string, number>>,
  known: { readonly keyId: string; has(keyId: string): boolean } | undefined,
): readonly KeyUse[] {
  return Object.entries(keys).toSorted().map(([keyId, secrets]) => {
    if (known === undefined) return { keyId, secrets };
    const place = keyId === known.keyId
      ? "encrypts new secrets"
      : known.has(keyId)
      ? "only decrypts"
      : "missing";
    return { keyId, secrets, place };
  });
}

function useText({ keyId, secrets, place }: KeyUse): string {
  return `${secrets} secrets encrypted with the key ${keyId}${place === undefined ? "" : `, ${place}`}`;
}

/** A failure of the store as a `CommandError`. */
async function reported<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FlagError) throw error;
    // The store, the key file or the copy that the command names cannot be one.
    const isUsage = error instanceof RangeError || error instanceof Deno.errors.NotFound;
    throw new CommandError(errorText(error), { cause: error, isUsage });
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
