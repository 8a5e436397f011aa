import { assertEquals } from "#assert";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import { StreamIds } from "../../../../src/grpc/native/stream_ids.ts";

Deno.test("StreamIds: streams that were left out are distinguished from streams that were open", () => {
  const ids = new StreamIds();
  for (const id of [1, 3, 9, 11]) ids.open(id);
  const found = [1, 3, 4, 5, 7, 8, 9, 11, 13].map((id) => [id, ids.wasSkipped(id)]);
  const expected = [[1, false], [3, false], [4, true], [5, true], [7, true], [8, true], [9, false], [
    11,
    false,
  ], [13, false]];
  assertEquals([ids.last, found], [11, expected]);
});

Deno.test("StreamIds: a first stream above 1 leaves those below out", () => {
  const ids = new StreamIds();
  ids.open(5);
  assertEquals([1, 3, 5].map((id) => ids.wasSkipped(id)), [true, true, false]);
});

Deno.test("StreamIds: what is remembered has a bound, the oldest goes first", () => {
  const ids = new StreamIds();
  const count = LIMITS.remembered + 1;
  for (let index = 0; index < count; index++) {
    ids.open(4 * index + 3);
    ids.rememberReset(4 * index + 3);
  }
  const last = 4 * LIMITS.remembered + 3;
  assertEquals(
    [
      ids.wasSkipped(1),
      ids.wasSkipped(5),
      ids.wasSkipped(last - 2),
      ids.wasResetHere(3),
      ids.wasResetHere(7),
      ids.wasResetHere(last),
    ],
    [false, true, true, false, true, true],
  );
});
