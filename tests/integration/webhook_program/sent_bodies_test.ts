import { assertEquals, assertMatch } from "@std/assert";
import { deflateSync, gzipSync } from "node:zlib";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";
import { type RawAnswer, sendRaw } from "../../harness/raw_http.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN, api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const SECRET = "It's a Secret to Everybody";
const MAX_BYTES = 20_000;
const JSON_LINE = "Content-Type: application/json";
const utf8 = (text: string) => new TextEncoder().encode(text);
const gzip = (text: string) => new Uint8Array(gzipSync(text));
const BODIES: Bodies = {
  trigger: '{"total":1.10,"name":"café"}',
  signed: '{"total":1.10,"name":"café"}',
  event: '{"event":"a.b","data":{"total":1.10,"name":"café"}}',
  administration: '{"name":"desk","kinds":["café.*"]}',
  decision: '{"domain":"none","descriptors":[{"entries":[{"key":"café"}]}]}',
};

interface Bodies {
  readonly trigger: string;
  readonly signed: string;
  readonly event: string;
  readonly administration: string;
  readonly decision: string;
}

interface Case {
  readonly name: string;
  readonly lines: readonly string[];
  readonly encode: (text: string) => Uint8Array;
  /** The status of a body that cannot be read; none where it can. */
  readonly refused?: number;
  /** A body that is read by the type of its content even where the administration and the triggers require JSON. */
  readonly decisions?: "accepted";
}

const CASES: readonly Case[] = [
  { name: "plain", lines: [JSON_LINE], encode: utf8 },
  { name: "gzip", lines: [JSON_LINE, "Content-Encoding: gzip"], encode: gzip },
  { name: "x-gzip in capitals", lines: [JSON_LINE, "Content-Encoding: X-GZIP"], encode: gzip },
  { name: "identity and gzip", lines: [JSON_LINE, "Content-Encoding: identity, gzip"], encode: gzip },
  {
    name: "identity and gzip in two headers",
    lines: [JSON_LINE, "Content-Encoding: identity", "content-encoding: gzip"],
    encode: gzip,
  },
  { name: "identity", lines: [JSON_LINE, "Content-Encoding: identity"], encode: utf8 },
  { name: "no coding", lines: [JSON_LINE, "Content-Encoding:"], encode: utf8 },
  { name: "two gzip members", lines: [JSON_LINE, "Content-Encoding: gzip"], encode: inMembers },
  { name: "a byte order mark", lines: [JSON_LINE], encode: (text) => utf8(`\ufeff${text}`) },
  {
    name: "a byte order mark in gzip",
    lines: [JSON_LINE, "Content-Encoding: gzip"],
    encode: (text) => gzip(`\ufeff${text}`),
  },
  {
    name: "Latin-1, declared",
    lines: ["Content-Type: application/json; charset=ISO-8859-1"],
    encode: (text) => Uint8Array.from(text, (character) => character.charCodeAt(0)),
  },
  {
    name: "UTF-16, declared",
    lines: ['Content-Type: application/json; a="x;charset=y"; Charset="utf-16le"'],
    encode: (text) => new Uint8Array(Uint16Array.from(text, (unit) => unit.charCodeAt(0)).buffer),
  },
  {
    name: "UTF-16 with a byte order mark",
    lines: [JSON_LINE],
    encode: (text) => new Uint8Array(Uint16Array.from(`\ufeff${text}`, (unit) => unit.charCodeAt(0)).buffer),
  },
  {
    name: "a byte order mark of UTF-8, and another charset",
    lines: ["Content-Type: application/json; charset=iso-8859-1"],
    encode: (text) => utf8(`\ufeff${text}`),
  },
  { name: "text/json", lines: ["Content-Type: text/json"], encode: utf8 },
  { name: "utf8, as some write it", lines: ["Content-Type: application/json;charset=UTF8"], encode: utf8 },
  {
    name: "application/cloudevents+json",
    lines: ["Content-Type: application/cloudevents+json"],
    encode: utf8,
  },
  {
    name: "a media type with +json and parameters",
    lines: ["Content-Type: Application/Vnd.API+JSON ; charset=utf-8; a=b"],
    encode: utf8,
  },
  { name: "another type with +json", lines: ["Content-Type: model/gltf+json"], encode: utf8 },
  { name: "the type twice", lines: [JSON_LINE, JSON_LINE], encode: utf8 },
  { name: "br", lines: [JSON_LINE, "Content-Encoding: br"], encode: utf8, refused: 415 },
  {
    name: "deflate",
    lines: [JSON_LINE, "Content-Encoding: deflate"],
    encode: (text) => new Uint8Array(deflateSync(text)),
    refused: 415,
  },
  { name: "gzip twice", lines: [JSON_LINE, "Content-Encoding: gzip, gzip"], encode: gzip, refused: 415 },
  {
    name: "gzip twice in two headers",
    lines: [JSON_LINE, "Content-Encoding: gzip", "Content-Encoding: gzip"],
    encode: gzip,
    refused: 415,
  },
  { name: "truncated gzip", lines: [JSON_LINE, "Content-Encoding: gzip"], encode: truncated, refused: 400 },
  { name: "gzip that is none", lines: [JSON_LINE, "Content-Encoding: gzip"], encode: utf8, refused: 400 },
  { name: "gzip that is not declared", lines: [JSON_LINE], encode: gzip, refused: 400 },
  { name: "UTF-8 that is none", lines: [JSON_LINE], encode: () => Uint8Array.of(0x7b, 0xff), refused: 400 },
  {
    name: "gzip that becomes too large",
    lines: [JSON_LINE, "Content-Encoding: gzip"],
    encode: (text) => gzip(`${" ".repeat(2_000_000)}${text}`),
    refused: 413,
  },
  {
    name: "two types in one line",
    lines: ["Content-Type: application/json; charset=utf-8, application/json"],
    encode: utf8,
    refused: 415,
    decisions: "accepted",
  },
  {
    name: "an unknown charset",
    lines: ["Content-Type: application/json; charset=klingon"],
    encode: utf8,
    refused: 415,
  },
  {
    name: "another type",
    lines: ["Content-Type: text/plain"],
    encode: utf8,
    refused: 415,
    decisions: "accepted",
  },
  {
    name: "a type that only begins like JSON",
    lines: ["Content-Type: application/jsonp"],
    encode: utf8,
    refused: 415,
    decisions: "accepted",
  },
];

function inMembers(text: string): Uint8Array {
  return Uint8Array.of(...gzip(text.slice(0, 5)), ...gzip(text.slice(5)));
}

function truncated(text: string): Uint8Array {
  return gzip(text).subarray(0, -6);
}

const ACCEPTED: Readonly<Record<keyof Bodies, number>> = {
  ...{ trigger: 202, signed: 202, event: 202 },
  // The pattern and the domain are refused, so the body was read.
  ...{ administration: 422, decision: 200 },
};

Deno.test("webhooks: bodies are read in the coding and the charset that they were sent in, or refused", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_MAX_BODY_BYTES: `${MAX_BYTES}` });
  const { http } = weir.running.addresses;
  const { body: { key } } = await api(http, "/triggers", { body: { name: "echo", workflow: "echo" } });
  const verify = { scheme: "github", secret: SECRET };
  await api(http, "/triggers", { body: { name: "hub", workflow: "echo", verify } });
  const send = async (part: keyof Bodies, { lines, encode }: Case, id: string): Promise<RawAnswer> => {
    const body = encode(BODIES[part]);
    const signed = Object.entries(PROVIDER_HEADERS.github({ secret: SECRET, body, id }));
    const [path, credentials] = {
      trigger: ["/api/v1/workflows/triggers/echo", [`Authorization: Bearer ${key}`]],
      signed: ["/api/v1/workflows/triggers/hub", signed.map((header) => header.join(": "))],
      event: ["/api/v1/events", [`Authorization: Bearer ${ADMIN_TOKEN}`]],
      administration: ["/api/v1/event-keys", [`Authorization: Bearer ${ADMIN_TOKEN}`]],
      decision: ["/json", []],
    }[part] as [string, string[]];
    return await sendRaw(http, `POST ${path}`, [...credentials, ...lines], body);
  };
  const inputs = [];
  for (const [index, one] of CASES.entries()) {
    for (const part of Object.keys(BODIES) as (keyof Bodies)[]) {
      const { status, headers, body } = await send(part, one, `delivery-${index}`);
      const isRead = one.refused === undefined || (part === "decision" && one.decisions === "accepted");
      const isSmall = part === "decision" && one.refused === 413;
      const expected = isRead ? ACCEPTED[part] : isSmall ? 413 : one.refused;
      assertEquals([part, one.name, status], [part, one.name, expected], body);
      const isCoding = status === 415 && /Content-Encoding/.test(body);
      assertEquals(headers.get("accept-encoding"), isCoding ? "gzip" : undefined);
      assertEquals(isCoding, one.refused === 415 && one.lines.some((line) => line.startsWith("Content-Enc")));
      if (status === 202 && part !== "event") inputs.push(JSON.parse(body).executionId);
    }
  }
  for (const id of inputs) {
    const { body } = await api(http, `/executions/${id}`);
    assertEquals(body["input"], { total: 1.1, name: "café" });
  }
});

/** Header lines of a call, and its status and code. */
const REPEATED: readonly (readonly [name: string, lines: readonly string[], answer: unknown])[] = [
  ["a key twice", ["Idempotency-Key: k1", "idempotency-key: k1"], [202, undefined]],
  ["the same key once", ["Idempotency-Key: k1"], [202, "true"]],
  ["two keys", ["Idempotency-Key: k2", "Idempotency-Key: k3"], [
    400,
    "invalid_idempotency_key Idempotency-Key",
  ]],
  ["three keys of which two are equal", [
    "Idempotency-Key: k2",
    "Idempotency-Key: k2",
    "Idempotency-Key: k3",
  ], [400, "invalid_idempotency_key Idempotency-Key"]],
  ["a key with a comma", ["Idempotency-Key: k2, k3"], [202, undefined]],
  ["two types", ["Content-Type: text/plain"], [415, "unsupported_media_type Content-Type"]],
  ["two tokens", ["Authorization: Bearer other"], [401, "unauthorized undefined"]],
  ["headers without a meaning", ["X-Forwarded-For: a", "X-Forwarded-For: b"], [202, undefined]],
];

Deno.test("webhooks: a header that means something has one value", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ ADMIN_ADDR: "127.0.0.1:0" });
  const { http, debug } = weir.running.addresses;
  const { body: { key } } = await api(debug, "/triggers", { body: { name: "echo", workflow: "echo" } });
  const target = "POST /api/v1/workflows/triggers/echo";
  for (const [name, lines, answer] of REPEATED) {
    const common = [JSON_LINE, `Authorization: Bearer ${key}`];
    const { status, headers, body } = await sendRaw(http, target, [...common, ...lines], "{}");
    const problem = status === 202 ? undefined : JSON.parse(body);
    const seen = problem === undefined
      ? headers.get("idempotency-replayed")
      : `${problem.code} ${problem.field}`;
    assertEquals([name, [status, seen]], [name, answer]);
  }
  // The server of the administration joins what is repeated.
  const call = (...lines: string[]) => {
    const common = [JSON_LINE, `Authorization: Bearer ${ADMIN_TOKEN}`];
    return sendRaw(debug, "POST /api/v1/triggers/echo/call", [...common, ...lines], '{"data":{}}');
  };
  const statuses = [];
  for (const keys of [["k4", "k4"], ["k4"], ["k4", "k5"]]) {
    const { status, headers } = await call(...keys.map((one) => `Idempotency-Key: ${one}`));
    statuses.push([status, headers.get("idempotency-replayed")]);
  }
  assertEquals(statuses, [[202, undefined], [202, "true"], [400, undefined]]);
});

/** Further header lines of a signed call with the delivery `d1`, and the answer. */
const SIGNED:
  readonly (readonly [name: string, lines: (signed: Signed) => readonly string[], answer: unknown])[] = [
    ["every header twice", (signed) => Object.entries(signed).map((one) => one.join(": ")), [202, undefined]],
    ["every header once", () => [], [202, "true"]],
    ["two deliveries", () => ["X-GitHub-Delivery: d2"], [400, "invalid_idempotency_key Idempotency-Key"]],
    ["two events", () => ["X-GitHub-Event: ping"], [401, "unauthorized undefined"]],
    ["two signatures", () => [`X-Hub-Signature-256: sha256=${"0".repeat(64)}`], [
      401,
      "unauthorized undefined",
    ]],
  ];

type Signed = Readonly<Record<string, string>>;

Deno.test("webhooks: the headers of a provider have one value", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const verify = { scheme: "github", secret: SECRET };
  await api(http, "/triggers", { body: { name: "hub", workflow: "echo", verify } });
  for (const [name, lines, answer] of SIGNED) {
    const signed = PROVIDER_HEADERS.github({ secret: SECRET, body: "{}", id: "d1" });
    const sent = [JSON_LINE, ...Object.entries(signed).map((one) => one.join(": ")), ...lines(signed)];
    const { status, headers, body } = await sendRaw(http, "POST /api/v1/workflows/triggers/hub", sent, "{}");
    const problem = status === 202 ? undefined : JSON.parse(body);
    const seen = problem === undefined
      ? headers.get("idempotency-replayed")
      : `${problem.code} ${problem.field}`;
    assertEquals([name, [status, seen]], [name, answer]);
  }
});

/** Parts of the path of a signed call behind `triggers/`, and the status, the detail and the line of the log. */
const PATHS: readonly (readonly [name: string, status: number, detail: RegExp, line: RegExp])[] = [
  ["hub/", 404, /has a slash after the name/, /unknown trigger refused" trigger="hub\/" .*has a slash after/],
  [
    "hub/more",
    404,
    /has a slash after the name/,
    /unknown trigger refused" trigger="hub\/more" .*has a slash/,
  ],
  [
    "other",
    401,
    /nor a valid signature/,
    /unknown trigger refused" trigger="other" .*no trigger of this name/,
  ],
  ["HUB", 401, /nor a valid signature/, /unknown trigger refused" trigger="HUB" .*no trigger of this name/],
];

Deno.test("webhooks: a call of a path that is none of a trigger is logged with its reason", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const verify = { scheme: "github", secret: SECRET };
  const { body: { id } } = await api(http, "/triggers", { body: { name: "hub", workflow: "echo", verify } });
  const headers = Object.entries(PROVIDER_HEADERS.github({ secret: SECRET, body: "{}" }));
  const lines = [JSON_LINE, ...headers.map((one) => one.join(": "))];
  for (const [name, status, detail, line] of PATHS) {
    const answer = await sendRaw(http, `POST /api/v1/workflows/triggers/${name}`, lines, "{}");
    assertEquals([name, answer.status], [name, status]);
    assertMatch(JSON.parse(answer.body).detail, detail);
    // One line a second is written of a kind, so a path is called until its line is there.
    await until(`the line of "${name}"`, async () => {
      if (weir.log.some((one) => line.test(one))) return true;
      await sendRaw(http, `POST /api/v1/workflows/triggers/${name}`, lines, "{}");
      return false;
    });
  }
  assertEquals((await api(http, `/triggers/${id}`)).status, 200);
});
