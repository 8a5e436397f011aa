import { assertEquals } from "#assert";
import { statsdPackets } from "../../../src/stats/statsd_udp.ts";

const CASES: Readonly<Record<string, readonly [units: readonly string[], ...packets: string[]]>> = {
  "nothing": [[]],
  "what fits goes together": [["abc", "def", "gh"], "abc\ndef\ngh"],
  "one byte too many": [["abc", "def", "ghi"], "abc\ndef", "ghi"],
  "bytes are counted, not characters": [["äöü", "äöüx"], "äöü", "äöüx"],
  "lines of one unit stay together": [["abcdef", "gh\nij"], "abcdef", "gh\nij"],
  "a unit that is too long goes alone": [["a", "bbbbbbbbbbbb", "c"], "a", "bbbbbbbbbbbb", "c"],
};

for (const [name, [units, ...packets]] of Object.entries(CASES)) {
  Deno.test(`push packets: ${name}`, () => assertEquals(statsdPackets(units, 10), packets));
}
