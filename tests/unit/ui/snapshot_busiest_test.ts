import { assertEquals } from "@std/assert";
import { busiest } from "../../../src/ui/snapshot.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const random = seededRandom(3);
const MANY = 10_000;

const LISTS: readonly { name: string; hits: readonly number[] }[] = [
  { name: "nothing", hits: [] },
  { name: "fewer than are wanted", hits: [1, 3, 2, 3] },
  { name: "all without hits", hits: new Array(MANY).fill(0) },
  { name: "few with hits", hits: Array.from({ length: MANY }, (_, index) => index % 997 === 0 ? index : 0) },
  { name: "more and more hits", hits: Array.from({ length: MANY }, (_, index) => index) },
  { name: "fewer and fewer hits", hits: Array.from({ length: MANY }, (_, index) => MANY - index) },
  { name: "any hits", hits: Array.from({ length: MANY }, () => Math.floor(random() * 500)) },
];

for (const { name, hits } of LISTS) {
  Deno.test(`the busiest of ${name} are those that a sort of all puts first`, () => {
    const sorted = [...hits.keys()].sort((a, b) => (hits[b] ?? 0) - (hits[a] ?? 0) || a - b);
    for (const limit of [1, 200]) {
      assertEquals(busiest(hits.length, (index) => hits[index] ?? 0, limit), sorted.slice(0, limit));
    }
  });
}
