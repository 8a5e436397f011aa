import { assertEquals } from "@std/assert";
import { callHeads } from "../../../src/load/h2_frames.ts";

Deno.test("callHeads: a peer that remembers too little gets whole fields each time", () => {
  const fields = [["te", "trailers"], ["x", "y"]] as const;
  const hex = (tableBytes: number) => {
    const { first, later } = callHeads(fields, tableBytes);
    return [first.slice(9).toHex(), later.slice(9).toHex()];
  };
  assertEquals(hex(4_096), ["4002746508747261696c657273" + "4001780179", "bfbe"]);
  const whole = "0002746508747261696c657273" + "0001780179";
  assertEquals(hex(0), [whole, whole]);
});
