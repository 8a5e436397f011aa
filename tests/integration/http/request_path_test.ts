import { assertEquals } from "#assert";
import { createRouter, type Route } from "../../../src/http/server/router.ts";
import { freePort } from "../../harness/free_port.ts";
import { ServedHttp } from "../../harness/http_fixture.ts";
import { sendRaw } from "../../harness/raw_http.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";

const TRIGGERS = "/api/v1/workflows/triggers/";
const shown = ({ url }: { readonly url: URL }) => new Response(`${url.pathname}${url.search}`);
const ROUTES: readonly Route[] = [
  { path: "/json", methods: ["GET"], handle: shown },
  { path: "/api/v1/*", methods: ["GET"], handle: () => new Response("administration") },
  { path: `${TRIGGERS}*`, methods: ["GET"], handle: shown },
];

const CHANGED = "400 path";
const NO_URL = "400 host";
/** The target of a request, and its answer: the handler's text, 404, or 400 with the refused part. */
const TARGETS: readonly (readonly [name: string, target: string, answer: string])[] = [
  ["a path", "/json", "/json"],
  ["a path with a query", "/json?a=b/../c&d=%2e%2e", "/json?a=b/../c&d=%2e%2e"],
  ["a backslash in the query", "/json?a=..\\b", "/json?a=..\\b"],
  ["dots in names", `${TRIGGERS}..a.b...`, `${TRIGGERS}..a.b...`],
  ["three dots", `${TRIGGERS}...`, `${TRIGGERS}...`],
  ["dot segments", `${TRIGGERS}../../endpoints`, CHANGED],
  ["dot segments to another route", `${TRIGGERS}../../../../json`, CHANGED],
  ["one dot", `${TRIGGERS}./a`, CHANGED],
  ["a last dot", `${TRIGGERS}.`, CHANGED],
  ["two last dots", `${TRIGGERS}..`, CHANGED],
  ["dots at the root", "/../json", CHANGED],
  ["encoded dots", `${TRIGGERS}%2e%2e/%2E%2E/endpoints`, CHANGED],
  ["dots of which one is encoded", `${TRIGGERS}.%2e/%2E./endpoints`, CHANGED],
  ["one encoded dot", `${TRIGGERS}%2e/a`, CHANGED],
  ["dots next to an encoded slash", `${TRIGGERS}..%2f..%2Fendpoints`, `${TRIGGERS}..%2f..%2Fendpoints`],
  ["backslashes", `${TRIGGERS}..\\..\\endpoints`, CHANGED],
  ["one backslash", "/api\\v1", CHANGED],
  ["a leading backslash", "/\\json", CHANGED],
  ["an encoded backslash", `${TRIGGERS}..%5c..%5Cendpoints`, CHANGED],
  ["a fragment", "/json#a", CHANGED],
  ["a fragment behind a query", "/json?a#b", CHANGED],
  ["characters that must be encoded", "/json{}", CHANGED],
  ["an encoded letter", "/%6ason", "404"],
  ["dots encoded twice", `${TRIGGERS}%252e%252e`, `${TRIGGERS}%252e%252e`],
  ["an encoded slash", `${TRIGGERS}a%2fb`, `${TRIGGERS}a%2fb`],
  ["two slashes", "//json", "404"],
  ["two slashes in front of a route's name", "//api/v1/endpoints", "404"],
  ["two slashes within", "/api/v1//json", "administration"],
  ["another case", "/JSON", "404"],
  ["parameters of a segment", `${TRIGGERS}..;/json`, `${TRIGGERS}..;/json`],
  ["the absolute form", "http://other.example/json?a", "/json?a"],
  ["the absolute form without a path", "http://other.example", "404"],
  ["the absolute form with dots", `http://other.example${TRIGGERS}../../../../json`, CHANGED],
  ["the absolute form with a backslash", "http://other.example\\json", CHANGED],
  ["the absolute form with a user", "http://a:b@other.example/json", NO_URL],
  ["the absolute form without a host", "http:///json", NO_URL],
  ["another scheme", "ftp://other.example/json", NO_URL],
  ["a path without a slash", "json", NO_URL],
];

Deno.test("a route is found by the path as it was sent", async () => {
  await using served = new ServedHttp(({ log, clock }) => createRouter(ROUTES, { logger: log, clock }));
  const answers = [];
  for (const [name, target] of TARGETS) answers.push([name, target, await answerOf(served, target)]);
  assertEquals(answers, TARGETS.map((one) => [...one]));
});

async function answerOf(served: ServedHttp, target: string): Promise<string> {
  using raw = await served.dial();
  await raw.write(`GET ${target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`);
  const [head = "", body = ""] = (await raw.read()).split("\r\n\r\n");
  const status = head.split(" ")[1] ?? "";
  if (status === "200") return body;
  return status === "400" && body !== "" ? `400 ${JSON.parse(body).field}` : status;
}

Deno.test("every port of the program matches paths as they were sent", async () => {
  const metrics = `127.0.0.1:${freePort()}`;
  await using weir = await ServeFixture.start({
    env: { DISABLE_STATS: "false", USE_PULL_METRICS: "true", PULL_METRICS_ADDR: metrics },
  });
  const { http, debug } = weir.running.addresses;
  const table = [
    [http, "/x/../healthcheck", "/healthcheck"],
    [debug, "/x/%2e%2e/stats", "/stats"],
    [debug, "/api/v1/workflows/triggers/..\\..\\endpoints", "/healthcheck"],
    [metrics, "/x/%2E./metrics", "/metrics"],
  ] as const;
  for (const [address, changed, plain] of table) {
    const statuses = [];
    for (const path of [changed, plain]) statuses.push((await sendRaw(address, `GET ${path}`, [])).status);
    assertEquals([changed, statuses], [changed, [400, 200]]);
  }
});
