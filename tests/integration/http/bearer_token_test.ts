import { assert, assertEquals } from "@std/assert";
import { Health } from "../../../src/base/health.ts";
import { createDebugHandler, type DebugRoute } from "../../../src/http/debug.ts";
import { ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const TOKEN = "correct-horse/battery+staple=";

function serveGuarded(routes: readonly DebugRoute[] = []): ServedHttp {
  return new ServedHttp(({ log, clock }) =>
    createDebugHandler({
      rlconfig: () => "the rules\n",
      stats: () => "the stats\n",
      health: new Health(),
      logger: log,
      clock,
      token: TOKEN,
      routes,
    })
  );
}

const WANTED = "a bearer token is required";
const NOT_RIGHT = "the bearer token is wrong";

interface HeaderCase {
  readonly name: string;
  readonly headers: readonly string[];
  readonly status: number;
  readonly reason?: string;
}

const HEADERS: readonly HeaderCase[] = [
  { name: "the token", headers: [`Authorization: Bearer ${TOKEN}`], status: 200 },
  { name: "a scheme in lower case", headers: [`authorization: bearer ${TOKEN}`], status: 200 },
  { name: "more than one space", headers: [`Authorization: BEARER   ${TOKEN}  `], status: 200 },
  { name: "no header", headers: [], status: 401, reason: WANTED },
  { name: "an empty header", headers: ["Authorization:"], status: 401, reason: WANTED },
  { name: "a scheme alone", headers: ["Authorization: Bearer"], status: 401, reason: WANTED },
  { name: "the token alone", headers: [`Authorization: ${TOKEN}`], status: 401, reason: WANTED },
  { name: "another scheme", headers: [`Authorization: Basic ${TOKEN}`], status: 401, reason: WANTED },
  { name: "no space", headers: [`Authorization: Bearer${TOKEN}`], status: 401, reason: WANTED },
  { name: "a text behind it", headers: [`Authorization: Bearer ${TOKEN} x`], status: 401, reason: WANTED },
  {
    name: "a token of one letter",
    headers: [`Authorization: Bearer ${TOKEN[0]}`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "a token that is one letter short",
    headers: [`Authorization: Bearer ${TOKEN.slice(0, -1)}`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "a token that is one letter long",
    headers: [`Authorization: Bearer ${TOKEN}=`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "a token in other letter case",
    headers: [`Authorization: Bearer ${TOKEN.toUpperCase()}`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "a token of 8,000 letters",
    headers: [`Authorization: Bearer ${"x".repeat(8_000)}`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "bytes that are no ASCII",
    headers: [`Authorization: Bearer ${TOKEN}é`],
    status: 401,
    reason: NOT_RIGHT,
  },
  {
    name: "the right header twice",
    headers: [`Authorization: Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`],
    status: 200,
  },
  {
    name: "a wrong header before the right one",
    headers: ["Authorization: Bearer x", `Authorization: Bearer ${TOKEN}`],
    status: 401,
    reason: WANTED,
  },
  {
    name: "the token in another header",
    headers: [`X-Authorization: Bearer ${TOKEN}`, `Cookie: ${TOKEN}`],
    status: 401,
    reason: WANTED,
  },
];

for (const { name, headers, status, reason } of HEADERS) {
  Deno.test(`a request with ${name} is ${status}`, async () => {
    await using served = serveGuarded();
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
