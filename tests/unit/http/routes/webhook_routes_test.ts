import { Administrators } from "../../../../src/http/routes/administrators.ts";
import { whoamiRoute } from "../../../../src/http/routes/whoami_route.ts";
import { ADMINISTRATOR, NO_ADMINISTRATORS } from "../../../harness/administrators.ts";
import { assertEquals } from "#assert";
import { createRouter } from "../../../../src/http/server/router.ts";
import type { WebhookRouteOptions } from "../../../../src/http/routes/webhook_routes.ts";
import { HandledHttp } from "../../../harness/http_fixture.ts";
import {
  AUTH,
  CallsDouble,
  EVENTS,
  JSON_TYPE,
  MAX_BYTES,
  TOKEN,
  TRIGGER,
  webhookHandler,
} from "../../../harness/webhook_routes.ts";

function serve(calls: CallsDouble, options: Partial<WebhookRouteOptions> = {}): HandledHttp {
  return new HandledHttp(webhookHandler(calls, options));
}

const NO_KEY = { "idempotency-key": "" };
const BASIC = { authorization: "Basic key" };
const OTHER = { authorization: "Bearer other" };
const LONG = "x".repeat(MAX_BYTES + 1);
const NO_UTF8 = new Uint8Array([0x22, 0xff, 0x22]);
/** A call with the key and this media type. */
const sent = (body: BodyInit, headers: Record<string, string>, type = "application/json"): RequestInit => ({
  body,
  headers: { ...AUTH, "content-type": type, ...headers },
});
const withKey = (key: string) => sent(NO_UTF8, { "idempotency-key": key });

type Row = readonly [name: string, init: RequestInit, status: number, code?: string, path?: string];

// Each row is right in what the row before was refused for, and wrong in all that comes later.
const METHODS: readonly Row[] = [
  ["another method", { method: "GET" }, 405, "method_not_allowed"],
  ["another method, too", { method: "PUT", body: LONG }, 405, "method_not_allowed"],
];
/** Who shows no key may have signed, and only a body that was read tells. */
const UNSIGNED: readonly Row[] = [
  ["no token, too large", { body: LONG, headers: NO_KEY }, 413, "too_large"],
  ["no token and no signature", { body: NO_UTF8, headers: NO_KEY }, 401, "unauthorized"],
  ["another scheme and no signature", { body: NO_UTF8, headers: BASIC }, 401, "unauthorized"],
];
const NO_TOKEN: readonly Row[] = [
  ["no token", { body: LONG, headers: NO_KEY }, 401, "unauthorized"],
  ["another scheme", { body: LONG, headers: BASIC }, 401, "unauthorized"],
];
const REST: readonly Row[] = [
  ["a key in the query", { body: "x" }, 401, "unauthorized", "?key=key"],
  ["no media type", sent(LONG, {}, ""), 415, "unsupported_media_type"],
  ["another media type", sent(LONG, {}, "application/jsonp"), 415, "unsupported_media_type"],
  ["too large", sent(LONG, NO_KEY), 413, "too_large"],
  ["an empty key", withKey(""), 400, "invalid_idempotency_key"],
  ["a long key", withKey("k".repeat(256)), 400, "invalid_idempotency_key"],
  ["a key with a tab", withKey("a\tb"), 400, "invalid_idempotency_key"],
  ["no UTF-8", withKey("k".repeat(255)), 400, "malformed_json"],
  ["all is right", sent("{}", { "idempotency-key": "k" }, "Application/JSON ; charset=utf-8"), 202],
];
const OF_TRIGGER: readonly Row[] = [
  ...METHODS,
  ...UNSIGNED,
  ["a key that is not let in", { body: LONG, headers: OTHER }, 404],
  ...REST,
];
// Reading events is another call.
const OF_EVENT: readonly Row[] = [
  ...METHODS.slice(1),
  ...NO_TOKEN,
  ["a key that is not let in", { body: LONG, headers: OTHER }, 401],
  ...REST,
];

for (const [target, rows] of [[TRIGGER, OF_TRIGGER], [EVENTS, OF_EVENT]] as const) {
  for (const [name, init, status, code, query = ""] of rows) {
    Deno.test(`webhook routes: the order of checks: POST ${target}: ${name} is ${status}`, async () => {
      const response = await serve(new CallsDouble()).fetch(`${target}${query}`, { method: "POST", ...init });
      const problem = await response.json();
      assertEquals(response.status, status);
      if (code !== undefined) {
        assertEquals([problem.code, problem.requestId, problem.status], [code, "made", status]);
        assertEquals(response.headers.get("content-type"), "application/problem+json");
      }
      const { headers } = response;
      if (code === "unauthorized") assertEquals(headers.get("www-authenticate"), "Bearer");
      if (code === "method_not_allowed" && target === TRIGGER) assertEquals(headers.get("allow"), "POST");
    });
  }
}

Deno.test("webhook routes: what a trigger passes on", async () => {
  const calls = new CallsDouble();
  const results: number[] = [];
  const served = serve(calls, { onTrigger: ({ status }) => void results.push(status) });
  const call = (path: string, headers: Record<string, string>, body = '{"n": 1.10}') =>
    served.fetch(path, { method: "POST", headers: { ...AUTH, ...JSON_TYPE, ...headers }, body });
  const response = await call(`${TRIGGER}?a=b`, { "idempotency-key": " k ", "content-length": "11" });
  assertEquals([response.status, await response.text()], [202, '{"a":1}']);
  assertEquals(response.headers.get("x-request-id"), "made");
  await (await call("/api/v1/workflows/triggers/", {})).body?.cancel();
  await (await call(`${TRIGGER}/more`, { authorization: "bearer other" })).body?.cancel();
  assertEquals(calls.asked, [
    ["trigger", true, { name: "order-intake", idempotencyKey: "k", body: '{"n": 1.10}' }],
    ["trigger", true, { name: "" }],
    ["trigger", true, { name: "", body: '{"n": 1.10}' }],
    ["trigger", false, { name: "order-intake/more" }],
  ]);
  assertEquals(results, [202, 202, 404]);
});

Deno.test("webhook routes: a form is read once its trigger is known, with its headers but the credentials", async () => {
  const calls = new CallsDouble();
  const contentType = "application/x-www-form-urlencoded";
  const headers = {
    "content-type": contentType,
    "content-length": "3",
    "x-topic": "a",
    cookie: "b",
    "x-token": "c",
  };
  const init = { method: "POST", headers: { ...AUTH, ...headers }, body: "a=1" };
  const response = await serve(calls).fetch(TRIGGER, init);
  await response.body?.cancel();
  assertEquals(response.status, 202);
  assertEquals(calls.asked, [
    ["trigger", true, { name: "order-intake", contentType }],
    ["trigger", true, { name: "order-intake", contentType, body: "a=1" }],
  ]);
  const passed = calls.headers?.map(([name]) => name).filter((name) => name !== "content-type");
  assertEquals(passed, ["content-length", "x-topic"]);
});

Deno.test("webhook routes: a small body takes one round trip, others are read for a known caller only", async () => {
  for (
    const [length, keys, coding] of [
      [65_536, ["key", "other"]],
      [65_536, ["other"], "gzip"],
      [65_537, ["other"]],
      [undefined, ["other"]],
    ] as const
  ) {
    for (const key of keys) {
      const calls = new CallsDouble();
      const served = serve(calls, { maxBodyBytes: 100_000 });
      const headers = { authorization: `Bearer ${key}`, ...JSON_TYPE };
      const body = length === undefined ? "[]" : `"${"x".repeat(length - 2)}"`;
      const announced = length === undefined ? {} : { "content-length": `${length}` };
      const coded = coding === undefined ? {} : { "content-encoding": coding };
      const init = { method: "POST", headers: { ...headers, ...announced, ...coded }, body };
      const response = await served.fetch(TRIGGER, init);
      assertEquals(response.status, key === "key" ? 202 : 404);
      await response.body?.cancel();
      const isRead = length === 65_536 && coding === undefined;
      assertEquals(calls.asked, [
        ["trigger", key === "key", { name: "order-intake", ...(isRead ? { body } : {}) }],
      ]);
    }
  }
});

Deno.test("webhook routes: the administration's own token posts events as the administration", async () => {
  const calls = new CallsDouble();
  const served = serve(calls);
  const headers = { authorization: `Bearer ${TOKEN}`, ...JSON_TYPE, "content-length": "2" };
  await (await served.fetch(EVENTS, { method: "POST", headers, body: "{}" })).body?.cancel();
  assertEquals(calls.asked, [["event", "admin", { body: "{}" }]]);
});

Deno.test("webhook routes: the administration", async () => {
  const calls = new CallsDouble();
  const served = serve(calls);
  const token = { authorization: `Bearer ${TOKEN}` };
  const rows: [string, RequestInit, number][] = [
    ["/api/v1/endpoints", {}, 401],
    ["/api/v1/nothing", { headers: AUTH }, 401],
    ["/api/v1/endpoints?limit=3", { headers: token }, 204],
    ["/api/v1/events?limit=3", { headers: token }, 204],
    ["/api/v1/events", { method: "DELETE", headers: token }, 405],
    ["/api/v1/endpoints/x/check", { method: "POST", headers: token }, 204],
    ["/api/v1/endpoints", { method: "POST", headers: { ...token, ...JSON_TYPE }, body: "{}" }, 204],
    ["/api/v1/endpoints", { method: "POST", headers: token, body: "{}" }, 415],
    ["/api/v1/endpoints", { method: "POST", headers: { ...token, ...JSON_TYPE }, body: LONG }, 413],
  ];
  for (const [path, init, status] of rows) {
    const response = await served.fetch(path, init);
    await response.body?.cancel();
    assertEquals(response.status, status, `${init.method} ${path}`);
  }
  const administrator = ADMINISTRATOR;
  assertEquals(calls.asked, [
    ["administer", { administrator, method: "GET", path: "/endpoints", query: "limit=3" }],
    ["administer", { administrator, method: "GET", path: "/events", query: "limit=3" }],
    ["administer", { administrator, method: "POST", path: "/endpoints/x/check", query: "" }],
    ["administer", { administrator, method: "POST", path: "/endpoints", query: "", body: "{}" }],
  ]);
});

Deno.test("webhook routes: who calls is passed on by name and role; the role read posts no events", async () => {
  const calls = new CallsDouble();
  const alice = { name: "alice", role: "admin" } as const;
  const ci = { name: "ci", role: "read" } as const;
  const administrators = new Administrators([{ ...alice, token: "of-alice" }, { ...ci, token: "of-ci" }]);
  const served = serve(calls, { administrators });
  const ask = async (method: string, path: string, token: string) => {
    const headers = { authorization: `Bearer ${token}`, ...JSON_TYPE, "content-length": "2" };
    const response = await served.fetch(path, {
      method,
      headers,
      ...method === "POST" ? { body: "{}" } : {},
    });
    const { code = "" } = await response.json().catch(() => ({}));
    return [response.status, code];
  };
  assertEquals(await ask("POST", EVENTS, "of-alice"), [202, ""]);
  assertEquals(await ask("POST", EVENTS, "of-ci"), [403, "role_not_allowed"]);
  assertEquals(await ask("GET", EVENTS, "of-ci"), [204, ""]);
  assertEquals(await ask("GET", "/api/v1/audit", "of-alice"), [204, ""]);
  assertEquals(await ask("GET", "/api/v1/audit", "of-bob"), [401, "unauthorized"]);
  assertEquals(calls.asked, [
    ["event", "alice", { body: "{}" }],
    ["administer", { administrator: ci, method: "GET", path: "/events", query: "" }],
    ["administer", { administrator: alice, method: "GET", path: "/audit", query: "" }],
  ]);
});

Deno.test("whoami: the owner of the token", async () => {
  const administrators = new Administrators([{ name: "ci", role: "read", token: "of-ci" }]);
  const ask = async (options: Partial<WebhookRouteOptions>, token: string, method = "GET") => {
    const served = new HandledHttp(({ log, clock }) =>
      createRouter([whoamiRoute({ administrators, ...options })], { logger: log, clock })
    );
    const headers = { authorization: `Bearer ${token}` };
    const response = await served.fetch("/api/v1/whoami", { method, headers });
    const { code, name, role } = await response.json();
    return [response.status, code ?? [name, role]];
  };
  assertEquals(await ask({}, "of-ci"), [200, ["ci", "read"]]);
  assertEquals(await ask({}, "of-bob"), [401, "unauthorized"]);
  assertEquals(await ask({}, "of-ci", "POST"), [405, "method_not_allowed"]);
  assertEquals(await ask({ administrators: NO_ADMINISTRATORS }, "of-ci"), [404, "not_found"]);
});

Deno.test("webhook routes: without its own token the administration is not there", async () => {
  const served = serve(new CallsDouble(), { administrators: NO_ADMINISTRATORS });
  const rows: [string, string, Record<string, string>, number][] = [
    ["GET", "/api/v1/endpoints", {}, 404],
    ["GET", "/api/v1/endpoints", { authorization: `Bearer ${TOKEN}` }, 404],
    ["GET", EVENTS, { authorization: "Bearer " }, 404],
    ["POST", EVENTS, {}, 404],
    ["POST", EVENTS, { authorization: "Bearer other" }, 404],
    ["POST", EVENTS, AUTH, 202],
    ["POST", TRIGGER, AUTH, 202],
  ];
  for (const [method, path, headers, status] of rows) {
    const body = method === "POST" ? { body: "{}" } : {};
    const response = await served.fetch(path, {
      method,
      headers: { ...JSON_TYPE, ...headers },
      ...body,
    });
    await response.body?.cancel();
    assertEquals(response.status, status, `${method} ${path}`);
  }
});

Deno.test("webhook routes: no key and no token is logged", async () => {
  const served = serve(new CallsDouble());
  for (const path of [TRIGGER, "/api/v1/endpoints"]) {
    const headers = { authorization: "Bearer svct_secret", ...JSON_TYPE };
    await (await served.fetch(path, { method: "POST", headers, body: "{}" })).body?.cancel();
  }
  const text = JSON.stringify(served.log.lines);
  assertEquals([served.log.lines.length, text.includes("svct_secret")], [2, false]);
});
