import { assertEquals } from "#assert";
import { headerList } from "../../../../src/http/server/client_request.ts";
import { CurrentRequest } from "../../../../src/http/server/current_request.ts";
import { readRequestHead } from "../../../../src/http/server/request_head.ts";

Deno.test("the headers of a client are listed as a Headers object lists them", () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    "none but the host": [],
    "in the order of their names": ["X-b: 2", "x-a-c: 3", "X-A: 1", "accept: */*"],
    "values without the blanks around them": ["a:  b c\t", "empty:", "latin: \xe9"],
    "equal values once": ["a: 1", "A: 1"],
    "different values joined": ["a: 1", "b: 2", "A: 3", "cookie: c=1", "cookie: d=2"],
    "a coding twice": ["content-encoding: gzip", "content-encoding: gzip"],
    "cookies that a server would set": ["set-cookie: a=1", "set-cookie: b=2"],
    "names of properties": ["constructor: 1", "__proto__: 2"],
  };
  for (const [name, lines] of Object.entries(cases)) {
    const head = readRequestHead(["GET / HTTP/1.1", "host: weir.example", ...lines].join("\r\n"), "http");
    if ("kind" in head) throw new Error(`${name}: ${head.reason}`);
    const source = { next: () => undefined, goOn: () => {} };
    const request = new CurrentRequest(head, source).open("http://weir.example/");
    assertEquals(headerList(request), [...request.headers], name);
  }
});
