import { assertEquals } from "#assert";
import { quotasRoute } from "../../../../src/http/routes/quotas_route.ts";
import { administratorWith } from "../../../harness/administrators.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";

const ADMIN = "the-administration-token-of-this-test";
const DEBUG = "the-debug-token-of-this-test";

/** The route, which answers with what it was asked. */
const ROUTE = quotasRoute({
  quotas: (query) => Promise.resolve({ ...query }),
  debugToken: DEBUG,
  administrators: administratorWith(ADMIN),
});
const HTTP = new HandledHttp(debugHandler({ token: DEBUG, routes: [ROUTE] }));

async function answer(query: string, token: string | undefined = DEBUG) {
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  const response = await HTTP.fetch(`/quotas${query}`, { headers });
  const body = await response.json();
  return [response.status, response.ok ? body : body.detail];
}

Deno.test("/quotas: both tokens show the quotas, and no other does", async () => {
  const statuses = [];
  for (const token of ["", DEBUG, ADMIN, "another"]) statuses.push((await answer("", token))[0]);
  assertEquals(statuses, [401, 200, 200, 401]);
});

/** Each query, and the query that is read, or the reason for the refusal. */
const QUERIES: readonly (readonly [string, number, unknown])[] = [
  ["", 200, { limit: 1_000 }],
  ["?domain=shop&text=a%3D&limit=7", 200, { domain: "shop", text: "a=", limit: 7 }],
  ["?domain=shop&bucket=a%3Db,c=", 200, {
    domain: "shop",
    pairs: [{ key: "a", value: "b" }, { key: "c", value: "" }],
    limit: 1_000,
  }],
  ["?bucket=a", 400, 'Cannot read "bucket": "a" has no equals sign: expected key=value'],
  ["?domain=a&domain=b", 400, 'Cannot read "domain": must be given once'],
  ["?rule=a", 400, 'Cannot read "rule": only domain, bucket, text, limit are known'],
  ...["0", "1001", "x"].map((limit) =>
    [`?limit=${limit}`, 400, 'Cannot read "limit": must be a whole number from 1 to 1000'] as const
  ),
];

for (const [query, status, expected] of QUERIES) {
  Deno.test(`/quotas${query}: is answered with ${status}`, async () => {
    assertEquals(await answer(query), [status, expected]);
  });
}
