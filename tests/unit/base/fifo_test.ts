import { assertEquals } from "#assert";
import { Fifo } from "../../../src/base/fifo.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

Deno.test("queue: the same as an array, for any order of calls", () => {
  const random = seededRandom(7);
  const queue = new Fifo<number>();
  const array: number[] = [];
  for (let step = 0; step < 2_000; step++) {
    // Grows in the first half.
    if (random() < (step < 1_000 ? 0.6 : 0.4)) {
      queue.push(step);
      array.push(step);
    } else assertEquals(queue.shift(), array.shift());
    assertEquals([queue.length, queue.first], [array.length, array[0]]);
  }
});

Deno.test("queue: the first element is replaced", () => {
  const queue = new Fifo<string>();
  queue.push("a");
  queue.push("b");
  queue.first = "c";
  assertEquals([queue.shift(), queue.shift(), queue.shift(), queue.length], ["c", "b", undefined, 0]);
});
