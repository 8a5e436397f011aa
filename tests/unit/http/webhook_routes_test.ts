import { Administrators } from "../../../src/http/administrators.ts";
import { whoamiRoute } from "../../../src/http/whoami_route.ts";
import { ADMINISTRATOR, NO_ADMINISTRATORS } from "../../harness/administrators.ts";
import { assertEquals } from "@std/assert";
import { createRouter } from "../../../src/http/router.ts";
import type { WebhookRouteOptions } from "../../../src/http/webhook_routes.ts";
import { HandledHttp } from "../../harness/http_fixture.ts";
import {
  AUTH,
  CallsDouble,
  EVENTS,
  JSON_TYPE,
  MAX_BYTES,
  serve,
  TOKEN,
  TRIGGER,
} from "./webhook_routes_fixture.ts";

interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly status: number;
  readonly code?: string;
  readonly shows?: Readonly<Record<string, string>>;
  /** Of both when absent. */
  readonly only?: "trigger" | "event";
}

const BAD_KEY = { "idempotency-key": "" };
const LONG = "x".repeat(MAX_BYTES + 1);
const NO_UTF8 = new Uint8Array([0x22, 0xff, 0x22]);

// Each row is right in what the row before was refused for, and wrong in all that comes later.
const ORDER: readonly Row[] = [
  {
    name: "another method",
    method: "GET",
    status: 405,
    code: "method_not_allowed",
    shows: { allow: "POST" },
  },
  { name: "another method, too", method: "PUT", body: LONG, status: 405, code: "method_not_allowed" },
  {
    name: "no token: it may be signed, and only a body that was read tells",
    body: LONG,
    headers: BAD_KEY,
    status: 413,
    code: "too_large",
    only: "trigger",
  },
  {
    name: "no token and no signature",
    body: NO_UTF8,
    headers: BAD_KEY,
    status: 401,
    code: "unauthorized",
    shows: { "www-authenticate": "Bearer" },
    only: "trigger",
  },
  {
    name: "another scheme and no signature",
    body: NO_UTF8,
    headers: { authorization: "Basic key" },
    status: 401,
    code: "unauthorized",
    only: "trigger",
  },
  {
    name: "no token",
    only: "event",
    body: LONG,
    headers: BAD_KEY,
    status: 401,
    code: "unauthorized",
    shows: {
      "www-authenticate": "Bearer",
    },
  },
  {
    name: "another scheme",
    only: "event",
    body: LONG,
    headers: { authorization: "Basic key" },
    status: 401,
    code: "unauthorized",
  },
  { name: "a key in the query", path: `${TRIGGER}?key=key`, body: "x", status: 401, code: "unauthorized" },
  { name: "a key that is not let in", body: LONG, headers: { authorization: "Bearer other" }, status: 404 },
  {
    name: "no media type",
    body: LONG,
    headers: { ...AUTH, "content-type": "" },
    status: 415,
    code: "unsupported_media_type",
  },
  {
    name: "another media type",
    body: LONG,
    headers: { ...AUTH, "content-type": "application/jsonp" },
    status: 415,
  },
  {
    name: "too large",
    body: LONG,
    headers: { ...AUTH, ...JSON_TYPE, ...BAD_KEY },
    status: 413,
    code: "too_large",
  },
  {
    name: "an empty key",
    body: NO_UTF8,
    headers: { ...AUTH, ...JSON_TYPE, ...BAD_KEY },
    status: 400,
    code: "invalid_idempotency_key",
  },
  {
    name: "a long key",
    body: NO_UTF8,
    headers: { ...AUTH, ...JSON_TYPE, "idempotency-key": "k".repeat(256) },
    status: 400,
    code: "invalid_idempotency_key",
  },
  {
    name: "a key with a tab",
    body: NO_UTF8,
    headers: { ...AUTH, ...JSON_TYPE, "idempotency-key": "a\tb" },
    status: 400,
    code: "invalid_idempotency_key",
  },
  {
    name: "no UTF-8",
    body: NO_UTF8,
    headers: { ...AUTH, ...JSON_TYPE, "idempotency-key": "k".repeat(255) },
    status: 400,
    code: "malformed_json",
  },
  {
    name: "all is right",
    body: "{}",
    headers: { ...AUTH, "content-type": "Application/JSON ; charset=utf-8", "idempotency-key": "k" },
    status: 202,
  },
];

for (const [what, path] of [["trigger", TRIGGER], ["event", EVENTS]] as const) {
  Deno.test(`webhook routes: the order of checks of a ${what}`, async () => {
    const served = serve(new CallsDouble());
    for (const row of ORDER) {
      // Reading events is another call.
      if (what === "event" && row.method === "GET") continue;
      if (row.only !== undefined && row.only !== what) continue;
      const { method = "POST", headers = {}, body } = row;
      const target = (row.path ?? path).replace(TRIGGER, path);
      const response = await served.fetch(target, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      const text = await response.json();
      const expected = what === "event" && row.status === 404 ? 401 : row.status;
      assertEquals(response.status, expected, row.name);
      if (row.code !== undefined) {
        assertEquals([text.code, text.requestId, text.status], [row.code, "made", row.status], row.name);
        assertEquals(response.headers.get("content-type"), "application/problem+json");
      }
      for (const [name, value] of Object.entries(row.shows ?? {})) {
        assertEquals(response.headers.get(name), value, row.name);
      }
    }
  });
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

Deno.test("webhook routes: without a token of its own the administration is not there", async () => {
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
