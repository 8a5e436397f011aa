import { assert, assertEquals } from "#assert";
import { debugHandler, ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const TOKEN = "correct-horse/battery+staple=";

const WANTED = "a bearer token is required";
const NOT_RIGHT = "the bearer token is wrong";

const RIGHT = `Authorization: Bearer ${TOKEN}`;
const bearer = (token: string) => [`Authorization: Bearer ${token}`];

const HEADERS: readonly (readonly [name: string, headers: readonly string[], reason?: string])[] = [
  ["the token", [RIGHT]],
  ["a scheme in lower case", [`authorization: bearer ${TOKEN}`]],
  ["more than one space", [`Authorization: BEARER   ${TOKEN}  `]],
  ["no header", [], WANTED],
  ["an empty header", ["Authorization:"], WANTED],
  ["a scheme alone", ["Authorization: Bearer"], WANTED],
  ["the token alone", [`Authorization: ${TOKEN}`], WANTED],
  ["another scheme", [`Authorization: Basic ${TOKEN}`], WANTED],
  ["no space", [`Authorization: Bearer${TOKEN}`], WANTED],
  ["a text behind it", [`${RIGHT} x`], WANTED],
  ["a token of one letter", bearer(TOKEN.slice(0, 1)), NOT_RIGHT],
  ["a token that is one letter short", bearer(TOKEN.slice(0, -1)), NOT_RIGHT],
  ["a token that is one letter long", bearer(`${TOKEN}=`), NOT_RIGHT],
  ["a token in other letter case", bearer(TOKEN.toUpperCase()), NOT_RIGHT],
  ["a token of 8,000 letters", bearer("x".repeat(8_000)), NOT_RIGHT],
  ["bytes that are no ASCII", bearer(`${TOKEN}é`), NOT_RIGHT],
  ["the right header twice", [RIGHT, RIGHT]],
  ["a wrong header before the right one", ["Authorization: Bearer x", RIGHT], WANTED],
  ["the token in another header", [`X-${RIGHT}`, `Cookie: ${TOKEN}`], WANTED],
];

for (const [name, headers, reason] of HEADERS) {
  const status = reason === undefined ? 200 : 401;
  Deno.test(`a request with ${name} is ${status}`, async () => {
    await using served = new ServedHttp(debugHandler({ token: TOKEN }));
    using raw = await served.dial();
    await raw.write(["GET /stats HTTP/1.1", "Host: localhost", ...headers, "", ""].join("\r\n"));
    const text = await raw.read((part) => wholeJson(part) || part.endsWith("the stats\n"));
    const body = text.split("\r\n\r\n")[1] ?? "";
    const given = body === "the stats\n" ? undefined : (JSON.parse(body) as { reason: string }).reason;
    assertEquals([Number(text.split(" ")[1]), given], [status, reason]);
    // What was shown may be the token of another place, or nearly ours: it is written nowhere.
    const written = JSON.stringify(served.log.lines) + body;
    assert(!written.includes(TOKEN.slice(0, -1)) && !written.includes("xxxx"), written);
    assertEquals(served.log.lines.length, status === 401 ? 1 : 0);
  });
}
