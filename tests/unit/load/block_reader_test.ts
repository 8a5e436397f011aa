import { assertEquals } from "@std/assert";
import { BlockReader } from "../../../src/load/block_reader.ts";

Deno.test("BlockReader: equal bytes are read anew once the table has changed", () => {
  const reader = new BlockReader();
  const read = (hex: string) => {
    const bytes = Uint8Array.fromHex(hex);
    return reader.read({ bytes, start: 0, end: bytes.length }, "first").httpStatus;
  };
  // 0x48: `:status` with a value, to be remembered; 0xbe: the newest of the table.
  const statuses = ["4803323030", "be", "be", "4803353030", "be", "be"].map(read);
  assertEquals(statuses, ["200", "200", "200", "500", "500", "500"]);
});
