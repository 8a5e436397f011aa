import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { StoreColumn } from "./tables.ts";
import type { Row } from "../work.ts";

const SIZE = 2n ** 256n;

/**
 * What is left of the rows of a table: how many there are, and the sum of their SHA-256. The sum does not ask for an
 * order, as the databases do not sort texts alike.
 */
export class TableDigest {
  readonly #columns: readonly StoreColumn[];
  #sum = 0n;
  #count = 0;

  /** Of the columns that both databases have, in one order. */
  constructor(columns: readonly StoreColumn[]) {
    this.#columns = columns;
  }

  /** How many rows were added. */
  get count(): number {
    return this.#count;
  }

  /** The sum, in hexadecimal digits. */
  get digest(): string {
    return this.#sum.toString(16).padStart(64, "0");
  }

  /** Adds a row. */
  add(row: Row): void {
    const hash = createHash("sha256");
    for (const { name } of this.#columns) addValue(hash, row[name]);
    this.#sum = (this.#sum + BigInt(`0x${hash.digest("hex")}`)) % SIZE;
    this.#count++;
  }
}

/** Its kind and its length come first, so that no two rows look alike. */
function addValue(hash: ReturnType<typeof createHash>, value: Row[string] | undefined): void {
  if (value === null || value === undefined) {
    hash.update("n");
  } else if (value instanceof Uint8Array) {
    hash.update(`o${value.length}:`).update(value);
  } else if (typeof value === "string") {
    const octets = Buffer.from(value, "utf8");
    hash.update(`t${octets.length}:`).update(octets);
  } else {
    hash.update(`w${value};`);
  }
}
