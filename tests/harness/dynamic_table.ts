import type { HpackDecoder } from "../../src/grpc/native/hpack_decoder.ts";

const FIRST_INDEX = 62;
const INDEXED = 0x80;
const ENTRY_OVERHEAD = 32;

/** The dynamic table of a decoder as a peer can refer to it, newest entry first, and its size in bytes. */
export function dynamicTableOf(decoder: HpackDecoder): {
  readonly table: readonly (readonly [name: string, value: string])[];
  readonly bytes: number;
} {
  const table: (readonly [name: string, value: string])[] = [];
  for (;;) {
    try {
      const [field] = decoder.decode(Uint8Array.of(INDEXED | (FIRST_INDEX + table.length)));
      if (field !== undefined) table.push([field[0], field[1]]);
    } catch {
      const sizes = table.map(([name, value]) => name.length + value.length + ENTRY_OVERHEAD);
      return { table, bytes: sizes.reduce((sum, size) => sum + size, 0) };
    }
  }
}
