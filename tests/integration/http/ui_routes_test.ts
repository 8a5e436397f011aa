import { administratorWith, NO_ADMINISTRATORS } from "../../harness/administrators.ts";
import { assertEquals } from "#assert";
import type { DebugTokens } from "../../../src/http/routes/bearer_token.ts";
import { uiLiveRoute } from "../../../src/http/routes/ui_routes.ts";
import { LiveFeed } from "../../../src/ui/live_feed.ts";
import { until } from "../../harness/until.ts";
import { EventReader } from "../../harness/event_reader.ts";
import { debugHandler, ServedHttp } from "../../harness/http_fixture.ts";

const ADMIN = "the-administration-token-of-this-test";
const ADMINS = administratorWith(ADMIN);
const DEBUG = "the-debug-token-of-this-test";

/** A debug port whose feed tells how often it was asked; closed at the end of its block. */
class Bed implements AsyncDisposable {
  readonly served: ServedHttp;
  #feed: LiveFeed | undefined;
  #made = 0;

  constructor(tokens: Partial<DebugTokens> = {}, maxStreams = 2) {
    this.served = new ServedHttp(({ log, clock }) => {
      const feed = this.#feed = new LiveFeed({ clock, maxStreams, snapshot: () => ({ made: ++this.#made }) });
      const given = { debugToken: undefined, administrators: NO_ADMINISTRATORS, ...tokens };
      const routes = [uiLiveRoute({ feed, ...given })];
      return debugHandler({ token: given.debugToken, routes })({ log, clock });
    }, { isTimed: true });
  }

  get streams(): number {
    return this.#feed?.streams ?? 0;
  }

  async get(options: RequestInit = {}): Promise<Response> {
    return await fetch(this.served.url("/ui/live"), options);
  }

  async read(): Promise<EventReader> {
    return new EventReader(await this.get());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.served[Symbol.asyncDispose]();
    assertEquals([this.streams, this.served.clock.waiting], [0, 0]);
  }
}

Deno.test("an event comes immediately, and one each second to all who listen", async () => {
  await using bed = new Bed();
  const first = await bed.read();
  assertEquals(await first.next(), 'event: snapshot\ndata: {"made":1}');
  bed.served.clock.advance(400);
  const second = await bed.read();
  assertEquals(await second.next(), 'event: snapshot\ndata: {"made":1}');
  for (const made of [2, 3]) {
    bed.served.clock.advance(1_000);
    assertEquals([await first.data(), await second.data()], [{ made }, { made }]);
  }
  await Promise.all([first.cancel(), second.cancel()]);
});

Deno.test("an answer is not kept, not changed on the way and no page", async () => {
  await using bed = new Bed();
  const wanted = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-content-type-options": "nosniff",
    "content-encoding": null,
  };
  for (const method of ["GET", "HEAD"]) {
    const response = await bed.get({ method, headers: { "accept-encoding": "gzip, br" } });
    const found = Object.fromEntries(Object.keys(wanted).map((name) => [name, response.headers.get(name)]));
    assertEquals([response.status, found], [200, wanted]);
    if (method === "HEAD") assertEquals(await response.text(), "");
    else await response.body?.cancel();
  }
});

Deno.test("HEAD opens no stream, and POST is 405", async () => {
  await using bed = new Bed();
  await (await bed.get({ method: "HEAD" })).body?.cancel();
  assertEquals(bed.streams, 0);
  const response = await bed.get({ method: "POST", body: "x" });
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("allow")], [405, "GET, HEAD"]);
});

const WRONG = "the bearer token is wrong";
const WANTED = "a bearer token is required";

/** Which tokens are set, which one is shown, and the answer. */
const TOKENS: readonly (readonly [set: Partial<DebugTokens>, shown: string | undefined, reason?: string])[] =
  [
    [{}, undefined],
    [{}, `Bearer ${ADMIN}`, WRONG],
    [{}, "Basic eDp5"],
    [{}, "Bearer", WANTED],
    [{ administrators: ADMINS }, undefined],
    [{ administrators: ADMINS }, "basic eDp5"],
    [{ administrators: ADMINS }, `Bearer ${ADMIN}`],
    [{ administrators: ADMINS }, `Bearer ${DEBUG}`, WRONG],
    [{ debugToken: DEBUG }, undefined, WANTED],
    [{ debugToken: DEBUG }, `Bearer ${DEBUG}`],
    [{ debugToken: DEBUG }, "Basic eDp5", WANTED],
    [{ debugToken: DEBUG, administrators: ADMINS }, undefined, WANTED],
    [{ debugToken: DEBUG, administrators: ADMINS }, `Bearer ${DEBUG}`],
    [{ debugToken: DEBUG, administrators: ADMINS }, `Bearer ${ADMIN}`],
    [{ debugToken: DEBUG, administrators: ADMINS }, `Bearer ${ADMIN}x`, WRONG],
  ];

for (const [set, shown, reason] of TOKENS) {
  const names = Object.keys(set).join(" and ") || "no token";
  const title = `with ${names} set, ${shown ?? "nothing"} is ${reason === undefined ? "let in" : "401"}`;
  Deno.test(title, async () => {
    await using bed = new Bed(set);
    for (const method of ["GET", "HEAD"]) {
      const response = await bed.get({
        method,
        headers: shown === undefined ? {} : { authorization: shown },
      });
      if (reason === undefined || method === "HEAD") await response.body?.cancel();
      else assertEquals((await response.json()).reason, reason);
      assertEquals(response.status, reason === undefined ? 200 : 401);
      assertEquals(response.headers.get("www-authenticate"), reason === undefined ? null : "Bearer");
    }
  });
}

Deno.test("more streams than are allowed are refused, until one of them ends", async () => {
  await using bed = new Bed();
  const readers = [await bed.read(), await bed.read()];
  const refused = await bed.get();
  const { title, detail, reason } = await refused.json();
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "10"]);
  assertEquals([title, reason], ["Service Unavailable", "too many streams are open"]);
  assertEquals(detail, "Cannot open another stream: too many are open; close a page that shows this service");
  await readers[0]?.cancel();
  await until("the place is free", () => bed.streams === 1);
  const third = await bed.read();
  assertEquals(await third.data(), { made: 1 });
  await Promise.all([readers[1]?.cancel(), third.cancel()]);
});

/** The origin that a browser reports for a request, and the answer. */
const SITES: Readonly<Record<string, number>> = {
  "same-origin": 200,
  "none": 200,
  "same-site": 403,
  "cross-site": 403,
  "none, cross-site": 403,
  "": 403,
};

for (const [site, status] of Object.entries(SITES)) {
  Deno.test(`a request with "sec-fetch-site: ${site}" is ${status}`, async () => {
    await using bed = new Bed({ administrators: ADMINS });
    // What a token allows is allowed to our own page alone.
    for (const token of [{}, { authorization: `Bearer ${ADMIN}` }]) {
      const link = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
      const response = await bed.get({ headers: { "sec-fetch-site": site, ...link, ...token } });
      assertEquals([response.status, bed.streams], [status, status === 200 ? 1 : 0]);
      if (status === 200) await response.body?.cancel();
      else assertEquals((await response.json()).reason, "pages of other sites are not served");
      await until("the place is free", () => bed.streams === 0);
    }
  });
}

Deno.test("a stream ends when its reader leaves, and nothing is made without one", async () => {
  await using bed = new Bed();
  const reader = await bed.read();
  await reader.data();
  assertEquals(bed.streams, 1);
  await reader.cancel();
  await until("the stream has ended", () => bed.streams === 0);
  bed.served.clock.advance(10_000);
  const later = await bed.read();
  assertEquals(await later.data(), { made: 2 });
  await later.cancel();
});

for (const graceMs of [0, 5_000]) {
  Deno.test(`streams end when the listener closes with a grace of ${graceMs} ms`, async () => {
    await using bed = new Bed();
    const readers = [await bed.read(), await bed.read()];
    for (const reader of readers) await reader.data();
    const closed = bed.served.listener.close(graceMs);
    bed.served.clock.advance(graceMs);
    assertEquals(await Promise.all(readers.map((reader) => reader.ended())), [true, true]);
    await closed;
    assertEquals(bed.streams, 0);
  });
}

Deno.test("the streams of administrators end when the tokens change, and others do not", async () => {
  const administrators = administratorWith(ADMIN);
  await using bed = new Bed({ administrators, debugToken: DEBUG }, 3);
  const open = (token: string) => bed.get({ headers: { authorization: `Bearer ${token}` } });
  const revoked = new EventReader(await open(ADMIN));
  const other = new EventReader(await open(DEBUG));
  for (const reader of [revoked, other]) await reader.next();
  administrators.replace([{ name: "other", role: "admin", token: "another-token-of-this-test" }]);
  bed.served.clock.advance(1_000);
  assertEquals([await revoked.data(), await other.data()], [null, { made: 2 }]);
  const again = await open(ADMIN);
  await again.body?.cancel();
  assertEquals([again.status, bed.streams], [401, 1]);
  await Promise.all([revoked.cancel(), other.cancel()]);
});
