import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { AuditAction } from "../../resources/audit_entry.ts";
import type { Sealed } from "../../model/records.ts";
import { addAudit } from "../operations/audit_log.ts";
import {
  countSealed,
  replaceSealed,
  sealedByOthers,
  type SealedColumns,
  sealedColumnsOf,
  type SealedRow,
} from "../sealed.ts";
import { knownVersion, type StoreConnection, transaction, withStoreToWrite, WRITING } from "./connection.ts";

/** Decrypts with all keys and encrypts with one of them. */
export interface RekeyBox {
  /** Of the key that encrypts. */
  readonly keyId: string;
  seal(text: string): Promise<Sealed>;
  unseal(sealed: Sealed): Promise<string>;
}

/** The keys of a store after all secrets were encrypted with one of them. */
interface RekeyedStore {
  /** Its path, or its address without a password. */
  readonly shown: string;
  /** The number of secrets that were encrypted again, by their tables. */
  readonly rekeyed: Readonly<Record<string, number>>;
  /** The number of secrets that each key encrypts now, by its id. */
  readonly keys: Readonly<Record<string, number>>;
  /** Why secrets were left as they are: a reason for each key, or for each damaged secret up to some. */
  readonly problems: readonly string[];
}

/** Most secrets of a transaction, so that services write in between. */
const PORTION = 100;
const MAX_PROBLEMS = 20;

/**
 * Encrypts all secrets of a store with the one key that encrypts new ones, in portions, while services use the store.
 * After an interruption the next call does the rest. Secrets that cannot be decrypted stay as they are.
 */
export async function rekeyStore(
  address: string,
  box: RekeyBox,
  { clock, portion = PORTION }: { readonly clock: Clock; readonly portion?: number | undefined },
): Promise<RekeyedStore> {
  return await withStoreToWrite(address, async (connection) => {
    const places = sealedColumnsOf(await connection.perform(knownVersion(connection)));
    const rekeyed: Record<string, number> = {};
    const problems = new Set<string>();
    for (const columns of places) {
      const count = await rekeyColumns(connection, columns, {
        box,
        portion,
        tell: (problem) => problems.size < MAX_PROBLEMS && problems.add(problem),
      });
      rekeyed[columns.table] = (rekeyed[columns.table] ?? 0) + count;
    }
    if (Object.values(rekeyed).some((count) => count > 0)) {
      const entry = rekeyedEntry({ keyId: box.keyId, secrets: rekeyed }, Math.floor(clock.now()));
      await transaction(connection, WRITING, () => connection.perform(addAudit(entry)));
    }
    const keys = await connection.perform(countSealed(places));
    return { shown: connection.shown, rekeyed, keys, problems: [...problems] };
  });
}

interface Rekeying {
  readonly box: RekeyBox;
  readonly portion: number;
  readonly tell: (problem: string) => void;
}

async function rekeyColumns(
  connection: StoreConnection,
  columns: SealedColumns,
  { box, portion: max, tell }: Rekeying,
): Promise<number> {
  let [after, count] = [0, 0];
  for (;;) {
    const rows = await connection.perform(sealedByOthers(columns, box.keyId, { after, max }));
    const last = rows.at(-1);
    if (last === undefined) return count;
    after = last.seq;
    const changes = await resealed(rows, box, tell);
    // Encrypted before the transaction, which so ends soon.
    count += await transaction(
      connection,
      WRITING,
      () => connection.perform(replaceSealed(columns, changes)),
    );
  }
}

async function resealed(rows: readonly SealedRow[], box: RekeyBox, tell: Rekeying["tell"]) {
  const changes: { readonly before: SealedRow; readonly after: Sealed }[] = [];
  for (const before of rows) {
    try {
      changes.push({ before, after: await box.seal(await box.unseal(before.sealed)) });
    } catch (error) {
      tell(errorText(error));
    }
  }
  return changes;
}

function rekeyedEntry(details: Readonly<Record<string, unknown>>, at: number) {
  const action: AuditAction = "store.rekeyed";
  return { id: crypto.randomUUID(), at, actor: "cli", action, object: "store", details };
}
