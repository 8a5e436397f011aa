import { assert, assertEquals } from "#assert";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { createSender, MAX_RESPONSE_BYTES } from "../../../src/webhooks/deliveries/sender.ts";
import { EchoServer } from "../../harness/rest_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { delivery, LOOPBACK, SECRET, sendOnce } from "../../harness/sender_fixture.ts";

const HEADERS = {
  authorization: 'Bearer hid/den"tok+en-1',
  "x-tenant": "short",
  "x-shop": "17",
  cookie: "session=s3cret=x; theme=dark",
  "content-type": "application/json",
  "x-svc-event": "order.created",
};

/** The stored part of this answer to a request with `HEADERS`. */
async function kept(body: string): Promise<string> {
  await using server = new EchoServer(() => new Response(body, { status: 400 }));
  const clock = new FakeClock();
  const sender = createSender({ allow: LOOPBACK, connectTimeoutMs: 60_000, userAgent: "Weir/test", clock });
  const request = { url: `${server.origin}/`, headers: HEADERS, body: new Uint8Array(), timeoutMs: 60_000 };
  const { response = "" } = await sender.send(request, { signal: new AbortController().signal });
  await sender.close();
  return response;
}

const TOKEN = 'hid/den"tok+en-1';
/** Up to the limit there is room for so much of the token. */
const filled = (room: number) => "-".repeat(MAX_RESPONSE_BYTES - room);
const url = (base64: string) => base64.replaceAll("+", "-").replaceAll("/", "_");

const CASES: Readonly<Record<string, readonly [answer: string, kept: string]>> = {
  "as they are": [JSON.stringify(HEADERS).replace('\\"', '"'), JSON.stringify({ ...HEADERS, ...masked() })],
  "escaped for JSON": [JSON.stringify(HEADERS), JSON.stringify({ ...HEADERS, ...masked() })],
  "escaped for JSON with slashes": [`{"a":"hid\\/den\\"tok+en-1"}`, `{"a":"***"}`],
  "escaped for JSON in HTML": [`{"a":"hid/den\\"tok\\u002ben-1"}`, `{"a":"***"}`],
  "escaped for a URL": [`?a=${encodeURIComponent(TOKEN)}&b=17`, "?a=***&b=***"],
  "escaped for JSON with hex digits in upper case": [
    `{"a":"hid\\u002Fden\\u0022tok\\u002Ben-1"}`,
    `{"a":"***"}`,
  ],
  "escaped for JSON in part": [`{"a":"hid/d\\u0065n\\"tok\\u002Ben-1"}`, `{"a":"***"}`],
  "escaped for a URL with hex digits in lower case": ["?a=hid%2fden%22tok%2ben-1&b=17", "?a=***&b=***"],
  "as the values of pairs": ['{"session":"s3cret=x","theme":"dark"}', '{"session":"***","theme":"***"}'],
  "cut off at the limit in an escape": [`${filled(7)}hid\\u00`, `${filled(7)}***`],
  "in base64": [`${btoa(TOKEN)} ${url(btoa(TOKEN))} ${btoa("short")}`, "*** *** ***"],
  "short inside other text": ["shortest status 1702", "***est status 1702"],
  "cut off at the limit": [filled(5) + TOKEN, `${filled(5)}***`],
  "cut off at the limit in base64": [filled(9) + btoa(TOKEN), `${filled(9)}***`],
  "complete at the limit": [filled(TOKEN.length) + TOKEN + "more", `${filled(TOKEN.length)}***`],
};

function masked() {
  return { authorization: "Bearer ***", "x-tenant": "***", "x-shop": "***", cookie: "*** ***" };
}

for (const [name, [answer, expected]] of Object.entries(CASES)) {
  Deno.test(`headers that a receiver repeats are not kept: ${name}`, async () => {
    assertEquals(await kept(answer), expected);
  });
}

Deno.test("headers that a receiver repeats are not kept: in the base64 of a longer text", async () => {
  for (const before of ["", "1", "12"]) {
    const text = `${before}Authorization: Bearer ${TOKEN}, and the rest`;
    for (const encoded of [btoa(text), url(btoa(text))]) {
      const [start = "", end = "", ...more] = (await kept(encoded)).split("***");
      assertEquals(more, []);
      assertEquals(encoded.length - start.length - end.length >= Math.floor(TOKEN.length * 4 / 3) - 2, true);
    }
  }
});

Deno.test("what leaves is what was given, with its length and a user agent", async () => {
  await using server = new EchoServer(() => new Response("thanks"));
  const given = delivery(`${server.origin}/hook?a=b`);
  assertEquals(await sendOnce(given.url), { status: 200, response: "thanks" });
  const [seen] = server.requests;
  assertEquals([seen?.method, seen?.path, new TextDecoder().decode(seen?.body)], [
    "POST",
    "/hook?a=b",
    new TextDecoder().decode(given.body),
  ]);
  assertEquals(seen?.headers, {
    ...given.headers,
    host: `127.0.0.1:${server.port}`,
    "content-length": `${given.body.byteLength}`,
    "user-agent": "Weir/test",
    accept: "*/*",
    "accept-encoding": "gzip, deflate, br",
    connection: "keep-alive",
  });
});

Deno.test("a response is kept as text, cut between characters", async () => {
  await using server = new EchoServer(() => new Response("ä".repeat(20_000)));
  const { response } = await sendOnce(`${server.origin}/`);
  assertEquals(response, "ä".repeat(MAX_RESPONSE_BYTES / 2));
  await using odd = new EchoServer(() => new Response(`x${"ä".repeat(20_000)}`));
  assertEquals((await sendOnce(`${odd.origin}/`)).response, `x${"ä".repeat(MAX_RESPONSE_BYTES / 2 - 1)}`);
});

/** A text that stays longer than what is kept of a response when it is compressed. */
const LONG = Array.from({ length: 30_000 }, (_, index) => Math.imul(index, 2_654_435_761) >>> 0).join(" ");
const COMPRESSED: Readonly<Record<string, (text: string) => Uint8Array>> = {
  gzip: gzipSync,
  deflate: deflateSync,
  "deflate without its header": deflateRawSync,
  br: brotliCompressSync,
};

for (const [name, compress] of Object.entries(COMPRESSED)) {
  Deno.test(`the beginning of a response in ${name} is kept, and what it repeats is not`, async () => {
    const [coding = ""] = name.split(" ");
    for (
      const [text, kept] of [[`{"secret":"${SECRET}"}`, '{"secret":"***"}'], [LONG], ["x".repeat(10_000_000)]]
    ) {
      const headers = { "content-encoding": coding };
      await using server = new EchoServer(() =>
        new Response(new Uint8Array(compress(text ?? "")), { headers })
      );
      const { status, response = "" } = await sendOnce(`${server.origin}/`);
      const begin = text?.slice(0, 15_000);
      assertEquals([status, kept === undefined ? response.slice(0, 15_000) : response], [200, kept ?? begin]);
      assert(response.length <= MAX_RESPONSE_BYTES, `kept ${response.length}`);
    }
  });
}
