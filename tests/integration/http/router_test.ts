import { assertEquals } from "#assert";
import { createRouter, type Route } from "../../../src/http/server/router.ts";
import { ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const ROUTES: readonly Route[] = [{ path: "/a", methods: ["GET"], handle: () => new Response("exact") }];

function serveRoutes(): ServedHttp {
  return new ServedHttp(({ log, clock }) =>
    createRouter(ROUTES, { logger: log, clock, newRequestId: () => "made" })
  );
}

const IDS: readonly (readonly [name: string, given: string, expected: string])[] = [
  ["a sane id", "abc-123/~!", "abc-123/~!"],
  ["an id of 128 characters", "x".repeat(128), "x".repeat(128)],
  ["an id of 129 characters", "x".repeat(129), "made"],
  ["an id with a space", "a b", "made"],
  ["an id beyond ASCII", "\u00e9", "made"],
  ["an empty id", "", "made"],
];

for (const [name, given, expected] of IDS) {
  Deno.test(`${name} is answered with "${expected.slice(0, 12)}"`, async () => {
    await using served = serveRoutes();
    using raw = await served.dial();
    await raw.write(`DELETE /a HTTP/1.1\r\nHost: a\r\nx-request-id: ${given}\r\n\r\n`);
    const [head = "", body = ""] = (await raw.read(wholeJson)).split("\r\n\r\n");
    assertEquals(
      {
        header: /x-request-id: (.*)\r/i.exec(`${head}\r`)?.[1],
        body: (JSON.parse(body) as { requestId: string }).requestId,
        log: served.log.lines.map(({ fields }) => fields.requestId),
      },
      { header: expected, body: expected, log: [expected] },
    );
  });
}
