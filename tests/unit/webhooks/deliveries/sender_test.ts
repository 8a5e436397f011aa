import { assertEquals, assertThrows } from "#assert";
import { createSender, parseRetryAfter } from "../../../../src/webhooks/deliveries/sender.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { delivery, LOOPBACK, SECRET } from "../../../harness/sender_fixture.ts";

Deno.test("a request that cannot be sent is reported as such, without what is in it", async () => {
  const clock = new FakeClock();
  const sender = createSender({ allow: LOOPBACK, connectTimeoutMs: 1_000, userAgent: "Weir/test", clock });
  const { signal } = new AbortController();
  const base = delivery(`http://127.0.0.1/?${SECRET}`);
  const table = [
    [{ headers: { "x-a": `${SECRET}\n` } }, "the request cannot be sent (invalid_header)"],
    [{ headers: { [`${SECRET} `]: "a" } }, "the request cannot be sent (invalid_header)"],
    [{ headers: { connection: SECRET } }, 'the header "connection" cannot be set'],
    [{ url: `http://user:${SECRET}@127.0.0.1/` }, "the request cannot be sent (invalid_url)"],
    [{ url: SECRET }, "the request cannot be sent (invalid_url)"],
  ] as const;
  for (const [fault, error] of table) {
    assertEquals(await sender.send({ ...base, ...fault }, { signal }), { errorKind: "unsendable", error });
  }
  await sender.close();
});

Deno.test("Retry-After is read in all of its forms", () => {
  const now = Date.parse("2026-11-22T10:00:00Z");
  const table: Readonly<Record<string, number | undefined>> = {
    "0": 0,
    " 120 ": 120_000,
    "Sun, 22 Nov 2026 10:01:00 GMT": 60_000,
    "Sun, 22 Nov 2026 09:00:00 GMT": 0,
    "Sunday, 22-Nov-26 10:01:00 GMT": 60_000,
    " Sun Nov 22 10:01:00 2026 ": 60_000,
    "-1": undefined,
    "1.5": undefined,
    "soon": undefined,
    "": undefined,
    "2026-11-22T10:01:00Z": undefined,
    "Sun, 99 Nov 2026 10:01:00 GMT": undefined,
    "9999999999": undefined,
  };
  for (const [text, expected] of Object.entries(table)) {
    assertEquals(parseRetryAfter(text, now), expected, text);
  }
});

Deno.test("a proxy that cannot be used is reported immediately", () => {
  const options = {
    allow: LOOPBACK,
    connectTimeoutMs: 1_000,
    userAgent: "Weir/test",
    clock: new FakeClock(),
  };
  const url = new URL(`https://user:${SECRET}@proxy.test`);
  const proxy = assertThrows(() => createSender({ ...options, proxy: url }));
  assertEquals(proxy.message, 'Invalid WEBHOOK_PROXY: expected the scheme http:, got "https:"');
});
