import { assertEquals, assertMatch } from "#assert";
import { deflateSync, gzipSync } from "node:zlib";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";
import { type RawAnswer, sendRaw } from "../../harness/raw_http.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const SECRET = "It's a Secret to Everybody";
const MAX_BYTES = 20_000;
const JSON_LINE = "Content-Type: application/json";
const utf8 = (text: string) => new TextEncoder().encode(text);
const gzip = (text: string) => new Uint8Array(gzipSync(text));
const BODIES = {
  trigger: '{"total":1.10,"name":"café"}',
  signed: '{"total":1.10,"name":"café"}',
  event: '{"event":"a.b","data":{"total":1.10,"name":"café"}}',
  administration: '{"name":"desk","kinds":["café.*"]}',
  decision: '{"domain":"none","descriptors":[{"entries":[{"key":"café"}]}]}',
};
type Part = keyof typeof BODIES;

/** Header lines, the body, and the status of a body that cannot be read; none where it can. */
type Case = readonly [
  lines: readonly string[],
  encode: (text: string) => Uint8Array,
  refused?: number,
  /** A body that is read by the type of its content even where the administration and the triggers require JSON. */
  decisions?: "accepted",
];

const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const utf16 = (text: string) => new Uint8Array(Uint16Array.from(text, (unit) => unit.charCodeAt(0)).buffer);
const marked = (text: string) => `\ufeff${text}`;
const coded = (
  ...codings: readonly string[]
) => [JSON_LINE, ...codings.map((one) => `Content-Encoding: ${one}`)];
const typed = (type: string) => [`Content-Type: ${type}`];

const CASES: Readonly<Record<string, Case>> = {
  "plain": [coded(), utf8],
  "gzip": [coded("gzip"), gzip],
  "x-gzip in capitals": [coded("X-GZIP"), gzip],
  "identity and gzip": [coded("identity, gzip"), gzip],
  "identity and gzip in two headers": [coded("identity", "gzip"), gzip],
  "identity": [coded("identity"), utf8],
  "no coding": [coded(""), utf8],
  "two gzip members": [coded("gzip"), inMembers],
  "a byte order mark": [coded(), (text) => utf8(marked(text))],
  "a byte order mark in gzip": [coded("gzip"), (text) => gzip(marked(text))],
  "Latin-1, declared": [typed("application/json; charset=ISO-8859-1"), latin1],
  "UTF-16, declared": [typed('application/json; a="x;charset=y"; Charset="utf-16le"'), utf16],
  "UTF-16 with a byte order mark": [coded(), (text) => utf16(marked(text))],
  "a byte order mark of UTF-8, and another charset": [
    typed("application/json; charset=iso-8859-1"),
    (text) => utf8(marked(text)),
  ],
  "text/json": [typed("text/json"), utf8],
  "utf8, as some write it": [typed("application/json;charset=UTF8"), utf8],
  "application/cloudevents+json": [typed("application/cloudevents+json"), utf8],
  "a media type with +json and parameters": [typed("Application/Vnd.API+JSON ; charset=utf-8; a=b"), utf8],
  "another type with +json": [typed("model/gltf+json"), utf8],
  "the type twice": [[JSON_LINE, JSON_LINE], utf8],
  "br": [coded("br"), utf8, 415],
  "deflate": [coded("deflate"), (text) => new Uint8Array(deflateSync(text)), 415],
  "gzip twice": [coded("gzip, gzip"), gzip, 415],
  "gzip twice in two headers": [coded("gzip", "gzip"), gzip, 415],
  "truncated gzip": [coded("gzip"), truncated, 400],
  "gzip that is none": [coded("gzip"), utf8, 400],
  "gzip that is not declared": [coded(), gzip, 400],
  "UTF-8 that is none": [coded(), () => Uint8Array.of(0x7b, 0xff), 400],
  "gzip that becomes too large": [coded("gzip"), (text) => gzip(`${" ".repeat(2_000_000)}${text}`), 413],
  "two types in one line": [
    typed("application/json; charset=utf-8, application/json"),
    ...[utf8, 415, "accepted"] as const,
  ],
  "an unknown charset": [typed("application/json; charset=klingon"), utf8, 415],
  "another type": [typed("text/plain"), utf8, 415, "accepted"],
  "a type that only begins like JSON": [typed("application/jsonp"), utf8, 415, "accepted"],
};

function inMembers(text: string): Uint8Array {
  return Uint8Array.of(...gzip(text.slice(0, 5)), ...gzip(text.slice(5)));
}

function truncated(text: string): Uint8Array {
  return gzip(text).subarray(0, -6);
}

const ACCEPTED: Readonly<Record<Part, number>> = {
  trigger: 202,
  signed: 202,
  event: 202,
  // The pattern and the domain are refused, so the body was read.
  administration: 422,
  decision: 200,
};

Deno.test("webhooks: bodies are read in the coding and the charset that they were sent in, or refused", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_MAX_BODY_BYTES: `${MAX_BYTES}` });
  const { http } = weir.running.addresses;
  const { body: { key } } = await api(http, "/triggers", { body: { name: "echo", workflow: "echo" } });
  const verify = { scheme: "github", secret: SECRET };
  await api(http, "/triggers", { body: { name: "hub", workflow: "echo", verify } });
  const send = async (part: Part, [lines, encode]: Case, id: string): Promise<RawAnswer> => {
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
  for (const [index, [name, one]] of Object.entries(CASES).entries()) {
    const [lines, , refused, decisions] = one;
    for (const part of Object.keys(BODIES) as Part[]) {
      const { status, headers, body } = await send(part, one, `delivery-${index}`);
      const isRead = refused === undefined || (part === "decision" && decisions === "accepted");
      assertEquals([part, name, status], [part, name, isRead ? ACCEPTED[part] : refused], body);
      const isCoding = status === 415 && /Content-Encoding/.test(body);
      assertEquals(headers.get("accept-encoding"), isCoding ? "gzip" : undefined);
      assertEquals(isCoding, refused === 415 && lines.some((line) => line.startsWith("Content-Enc")));
      if (status === 202 && part !== "event") inputs.push(JSON.parse(body).executionId);
    }
  }
  for (const id of inputs) {
    const { body } = await api(http, `/executions/${id}`);
    assertEquals(body["input"], { total: 1.1, name: "café" });
  }
});

/** The status of an answer, and whether it is a replay, or the code and the field of its problem. */
function shown({ status, headers, body }: RawAnswer): unknown {
  if (status === 202) return [status, headers.get("idempotency-replayed")];
  const { code, field } = JSON.parse(body);
  return [status, `${code} ${field}`];
}

/** Header lines of a call, and its status and code. */
const TWO_KEYS = [400, "invalid_idempotency_key Idempotency-Key"];
const REPEATED: readonly (readonly [name: string, lines: readonly string[], answer: unknown])[] = [
  ["a key twice", ["Idempotency-Key: k1", "idempotency-key: k1"], [202, undefined]],
  ["the same key once", ["Idempotency-Key: k1"], [202, "true"]],
  ["two keys", ["Idempotency-Key: k2", "Idempotency-Key: k3"], TWO_KEYS],
  ["three keys of which two are equal", ["k2", "k2", "k3"].map((key) => `Idempotency-Key: ${key}`), TWO_KEYS],
  ["a key with a comma", ["Idempotency-Key: k2, k3"], [202, undefined]],
  ["two types", ["Content-Type: text/plain"], [415, "unsupported_media_type Content-Type"]],
  ["two tokens", ["Authorization: Bearer other"], [401, "unauthorized undefined"]],
  ["headers without a meaning", ["X-Forwarded-For: a", "X-Forwarded-For: b"], [202, undefined]],
];

Deno.test("webhooks: a header that means something has one value", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ ADMIN_ADDR: "127.0.0.1:0" });
  const { http, debug } = weir.running.addresses;
  await until("the store", async () => (await api(debug, "/triggers?limit=1")).status === 200);
  const { body: { key } } = await api(debug, "/triggers", { body: { name: "echo", workflow: "echo" } });
  const target = "POST /api/v1/workflows/triggers/echo";
  for (const [name, lines, answer] of REPEATED) {
    const common = [JSON_LINE, `Authorization: Bearer ${key}`];
    assertEquals([name, shown(await sendRaw(http, target, [...common, ...lines], "{}"))], [name, answer]);
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
    const call = sendRaw(http, "POST /api/v1/workflows/triggers/hub", sent, "{}");
    assertEquals([name, shown(await call)], [name, answer]);
  }
});

/** Parts of the path of a signed call behind `triggers/`, and the status, the detail and the reason in the log. */
const PATHS: readonly (readonly [name: string, status: number, detail: RegExp, reason: string])[] = [
  ["hub/", 404, /has a slash after the name/, "has a slash after"],
  ["hub/more", 404, /has a slash after the name/, "has a slash"],
  ["other", 401, /nor a valid signature/, "no trigger of this name"],
  ["HUB", 401, /nor a valid signature/, "no trigger of this name"],
];

Deno.test("webhooks: a call of a path that is none of a trigger is logged with its reason", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const verify = { scheme: "github", secret: SECRET };
  const { body: { id } } = await api(http, "/triggers", { body: { name: "hub", workflow: "echo", verify } });
  const headers = Object.entries(PROVIDER_HEADERS.github({ secret: SECRET, body: "{}" }));
  const lines = [JSON_LINE, ...headers.map((one) => one.join(": "))];
  for (const [name, status, detail, reason] of PATHS) {
    const line = new RegExp(`unknown trigger refused" trigger="${name}" .*${reason}`);
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
