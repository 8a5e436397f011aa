import { assertEquals } from "@std/assert";
import { pushPackets } from "../../../src/stats/push_udp.ts";

const CASES: readonly { name: string; units: readonly string[]; packets: readonly string[] }[] = [
  { name: "nothing", units: [], packets: [] },
  { name: "what fits goes together", units: ["abc", "def", "gh"], packets: ["abc\ndef\ngh"] },
  { name: "one byte too many", units: ["abc", "def", "ghi"], packets: ["abc\ndef", "ghi"] },
  { name: "bytes are counted, not characters", units: ["äöü", "äöüx"], packets: ["äöü", "äöüx"] },
  { name: "lines of one unit stay together", units: ["abcdef", "gh\nij"], packets: ["abcdef", "gh\nij"] },
  {
    name: "a unit that is too long goes alone",
    units: ["a", "bbbbbbbbbbbb", "c"],
    packets: ["a", "bbbbbbbbbbbb", "c"],
  },
];

for (const { name, units, packets } of CASES) {
  Deno.test(`push packets: ${name}`, () => assertEquals(pushPackets(units, 10), [...packets]));
}
