import { assertEquals, assertThrows } from "#assert";
import { LiveFeed } from "../../../src/ui/live_feed.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { EventReader } from "../../harness/event_reader.ts";

function feedOf(clock: FakeClock, maxStreams = 4): { feed: LiveFeed; made: () => number } {
  let made = 0;
  const feed = new LiveFeed({ clock, maxStreams, snapshot: () => ++made });
  return { feed, made: () => made };
}

function readerOf(feed: LiveFeed, signals: readonly AbortSignal[] = []): EventReader {
  return new EventReader(new Response(feed.open({ signals })));
}

Deno.test("who takes nothing misses events, and is let go after half a minute", async () => {
  const clock = new FakeClock();
  const { feed, made } = feedOf(clock);
  const slow = feed.open({ signals: [] });
  const quick = readerOf(feed);
  assertEquals(await quick.data(), 1);
  for (let second = 1; second < 30; second++) {
    clock.advance(1_000);
    assertEquals(await quick.data(), second + 1);
  }
  assertEquals(feed.streams, 2);
  clock.advance(1_000);
  assertEquals([feed.streams, made()], [1, 31]);
  // No more than the first event waited for it.
  assertEquals(await Array.fromAsync(slow ?? []), [
    new TextEncoder().encode("event: snapshot\ndata: 1\n\n"),
  ]);
  await quick.cancel();
  assertEquals([feed.streams, clock.waiting], [0, 0]);
});

Deno.test("who takes something in between is not let go", async () => {
  const clock = new FakeClock();
  const { feed } = feedOf(clock);
  const reader = feed.open({ signals: [] })?.getReader();
  for (let round = 0; round < 4; round++) {
    clock.advance(25_000);
    await reader?.read();
  }
  assertEquals(feed.streams, 1);
  await reader?.cancel();
  assertEquals([feed.streams, clock.waiting], [0, 0]);
});

Deno.test("a stream that was read all the time ends after an hour", async () => {
  const clock = new FakeClock();
  const { feed } = feedOf(clock);
  const reader = readerOf(feed);
  for (let second = 1; second < 3_600; second++) {
    await reader.data();
    clock.advance(1_000);
  }
  assertEquals([feed.streams, await reader.data()], [1, 3_600]);
  clock.advance(1_000);
  assertEquals([await reader.data(), await reader.ended(), feed.streams, clock.waiting], [3_601, true, 0, 0]);
});

Deno.test("an aborted signal ends its stream alone, and one that was aborted before opens none", async () => {
  const clock = new FakeClock();
  const { feed } = feedOf(clock);
  const ended = new AbortController();
  const other = new AbortController();
  const [first, second] = [readerOf(feed, [ended.signal, other.signal]), readerOf(feed, [other.signal])];
  ended.abort();
  assertEquals([await first.next(), await first.next()], ["event: snapshot\ndata: 1", undefined]);
  assertEquals(feed.streams, 1);
  const late = readerOf(feed, [other.signal, ended.signal]);
  assertEquals([await late.ended(), feed.streams], [true, 1]);
  other.abort();
  assertEquals([await second.ended(), feed.streams, clock.waiting], [true, 0, 0]);
});

Deno.test("opening again and again makes one event a second", async () => {
  const clock = new FakeClock();
  const { feed, made } = feedOf(clock);
  for (let time = 0; time < 20; time++) {
    const reader = readerOf(feed);
    await reader.data();
    await reader.cancel();
    clock.advance(100);
  }
  assertEquals(made(), 2);
});

Deno.test("an event that cannot be made opens no stream", () => {
  const clock = new FakeClock();
  const snapshot = () => {
    throw new Error("not now");
  };
  const feed = new LiveFeed({ clock, maxStreams: 1, snapshot });
  for (let time = 0; time < 2; time++) {
    assertEquals(assertThrows(() => feed.open({ signals: [] })).message, "not now");
  }
  assertEquals([feed.streams, clock.waiting], [0, 0]);
});
