import { assertEquals } from "#assert";
import { LIMITS } from "../../../../src/grpc/native/limits.ts";
import { FLOOD_KINDS, type FloodKind, FloodSource } from "../../../harness/h2_floods.ts";
import {
  call,
  callFields,
  concatBytes,
  content,
  frame,
  headers,
  message,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import { ConnectionBed } from "../../../harness/connection_bed.ts";
import { probePath } from "../../../harness/probe.ts";
import { bySize, SOAK_SEED } from "../../../soak/soak_options.ts";

const CHUNK = 500;

/** Floods a connection whose clock stands still; answers its last frame, and whether the bound held. */
function flood(
  kinds: readonly FloodKind[],
  random: () => number,
): [last: string | undefined, isBounded: boolean] {
  const bed = new ConnectionBed();
  const source = new FloodSource(probePath("Echo"));
  let frames = 0;
  let last: string | undefined;
  while (!bed.connection.isClosing && frames <= LIMITS.frames.burst) {
    last = bed.send(source.next(kinds, CHUNK, random)).at(-1) ?? last;
    frames += CHUNK;
  }
  return [last?.replace(/ \d+ /, " "), bed.connection.isClosing && bed.probe.calls === 0];
}

for (const kind of FLOOD_KINDS) {
  Deno.test(`flood: ${kind} without end costs the peer its connection`, () => {
    assertEquals(flood([kind], () => 0), ["GOAWAY ENHANCE_YOUR_CALM", true]);
  });
}

Deno.test("flood: so does any mix of frames", () => {
  const random = seededRandom(2 + SOAK_SEED);
  for (let round = 0; round < bySize({ short: 12, full: 100 }); round++) {
    const kinds = FLOOD_KINDS.filter(() => random() < 0.4);
    if (kinds.length === 0) continue;
    assertEquals([kinds, flood(kinds, random)[1]], [kinds, true]);
  }
});

const AROUND = concatBytes(
  ...Array.from({ length: 4 }, () => windowUpdate(0, 100)),
  ...Array.from({ length: 2 }, () => windowUpdate(1, 100)),
  frame(6, 0, new Uint8Array(8)),
);

Deno.test("flood: calls pay for the frames that clients send around them, at any rate", () => {
  const bed = new ConnectionBed();
  for (let id = 1; id < 12_000; id += 2) bed.send(call(id, probePath("Echo"), "x"), AROUND);
  assertEquals([bed.probe.calls, bed.connection.isClosing], [6_000, false]);
});

Deno.test("flood: so do the messages of a stream", () => {
  const bed = new ConnectionBed();
  bed.send(headers(1, callFields(probePath("Chat"))));
  for (let count = 0; count < 6_000; count++) bed.send(content(1, message("x")), AROUND);
  assertEquals([bed.connection.streams.size, bed.connection.isClosing], [1, false]);
});
