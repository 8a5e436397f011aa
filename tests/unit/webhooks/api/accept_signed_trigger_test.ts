import { assertEquals } from "#assert";
import { findExecution, listExecutions } from "../../../../src/webhooks/store/operations/executions.ts";
import { findSignedTrigger } from "../../../../src/webhooks/store/operations/triggers.ts";
import { hmacSignature, PROVIDER_HEADERS } from "../../../harness/provider_signatures.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { type Body, type Seen, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { codeOf } from "./refusal_fixture.ts";

const SECRET = "It's a Secret to Everybody";
const STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"id":"evt_1","n":1.10}';

function github(body: string | Uint8Array, { id = "delivery-1", secret = SECRET } = {}) {
  return PROVIDER_HEADERS.github({ secret, body, id });
}

function signed(bed: WebhookBed, verify: Readonly<Record<string, unknown>> = {}, fields = {}): Promise<Body> {
  return bed.trigger({ verify: { scheme: "github", secret: SECRET, ...verify }, ...fields });
}

function isReplay({ headers }: Seen): boolean {
  return headers["idempotency-replayed"] === "true";
}

async function secretsOf(bed: WebhookBed, id: string): Promise<readonly Body[]> {
  return (await bed.call("GET", `/triggers/${id}`)).body["secrets"] as readonly Body[];
}

async function countOf(bed: WebhookBed): Promise<number> {
  return (await bed.store.read(listExecutions, { limit: 200 })).items.length;
}

Deno.test("signed trigger: a call of each provider makes one execution, repeated under the provider's identifier", async () => {
  await using bed = await WebhookBed.open();
  const timestamp = bed.clock.now() / 1_000;
  const table = [
    ["github", SECRET, PROVIDER_HEADERS.github, "push"],
    ["shopify", SECRET, PROVIDER_HEADERS.shopify, "orders/create"],
    ["stripe", "whsec_is+not~base64", PROVIDER_HEADERS.stripe, undefined],
    ["standard-webhooks", STANDARD_SECRET, PROVIDER_HEADERS["standard-webhooks"], undefined],
  ] as const;
  for (const [scheme, secret, headersOf, event] of table) {
    // Some senders of Standard Webhooks show their secret like this.
    const given = scheme === "standard-webhooks" ? `v1,${secret}` : secret;
    const { id } = await bed.trigger({ name: scheme, verify: { scheme, secret: given } });
    const call = (body: string, delivery: string, key: string) => {
      const headers = headersOf({ secret, body, timestamp, id: delivery });
      return bed.startSigned({ ...headers, "idempotency-key": key }, body, scheme);
    };
    const first = await call(BODY, "a", "1");
    const again = await call(BODY, "a", "2");
    const other = await call('{"id":"evt_2"}', "b", "1");
    assertEquals([codeOf(first), isReplay(first)], [[202, "executionId"], false], scheme);
    assertEquals([again.body, isReplay(again)], [first.body, true], scheme);
    assertEquals([other.status, isReplay(other)], [202, false], scheme);
    const found = await bed.store.read(findExecution, first.body.executionId);
    assertEquals([found?.execution.input, found?.execution.triggerId], [BODY, id]);
    assertEquals(found?.execution.event, event);
    const { body: shown } = await bed.call("GET", `/executions/${first.body.executionId}`);
    assertEquals(shown["event"], event);
  }
  assertEquals(await countOf(bed), 8);
});

Deno.test("signed trigger: with hmac-sha256 the headers, the encoding and the key are those of the trigger", async () => {
  await using bed = await WebhookBed.open();
  const verify = {
    scheme: "hmac-sha256",
    secret: SECRET,
    header: "X-Sign",
    prefix: "v1:",
    encoding: "base64",
    timestampHeader: "X-Time",
    toleranceSeconds: 10,
    idempotencyHeader: "X-Id",
  };
  await bed.trigger({ verify });
  const now = bed.clock.now() / 1_000;
  const call = (timestamp: number, more: Record<string, string> = {}) => {
    const sign = `v1:${hmacSignature({ secret: SECRET, body: BODY, timestamp }, "base64")}`;
    return bed.startSigned({ "x-sign": sign, "x-time": `${timestamp}`, ...more }, BODY);
  };
  const first = await call(now, { "x-id": "a" });
  const later = await call(now + 10, { "x-id": "a", "idempotency-key": "b" });
  const keyed = await call(now, { "idempotency-key": "b" });
  const free = [await call(now), await call(now)];
  assertEquals([first.status, later.body, isReplay(later)], [202, first.body, true]);
  assertEquals([keyed.status, isReplay(keyed)], [202, false]);
  assertEquals(free.map(({ status }) => status), [202, 202]);
  assertEquals(await countOf(bed), 4);
  for (const timestamp of [now - 11, now + 11]) assertEquals((await call(timestamp)).status, 401);
});

Deno.test("signed trigger: what is wrong is answered in the order of the checks", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await signed(bed, {}, { requireIdempotencyKey: true });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const deep = `${'{"a":'.repeat(65)}1${"}".repeat(65)}`;
  const noUtf8 = new Uint8Array([0x7b, 0xff, 0x7d]);
  const { "x-github-delivery": _, ...anonymous } = github("{}");
  const table: [string, Seen, unknown[]][] = [
    ["another secret", await bed.startSigned(github("no json", { secret: "x" }), "no json"), [
      401,
      "unauthorized",
    ]],
    ["no signature", await bed.startSigned({}, "no json"), [401, "unauthorized"]],
    ["a form", await bed.startSigned({ ...github("payload=1"), ...form }, "payload=1"), [
      415,
      "unsupported_media_type",
    ]],
    ["no UTF-8", await bed.startSigned(github(noUtf8), noUtf8), [400, "malformed_json"]],
    ["no JSON", await bed.startSigned(github("{"), "{"), [400, "malformed_json"]],
    ["a list", await bed.startSigned(github("[]"), "[]"), [422, "not_an_object"]],
    ["too deep", await bed.startSigned(github(deep), deep), [422, "too_deep"]],
    ["a long identifier", await bed.startSigned(github("{}", { id: "x".repeat(256) }), "{}"), [
      400,
      "invalid_idempotency_key",
    ]],
    ["an empty identifier", await bed.startSigned(github("{}", { id: "" }), "{}"), [
      400,
      "invalid_idempotency_key",
    ]],
    ["no identifier", await bed.startSigned(anonymous, "{}"), [400, "idempotency_key_required"]],
    ["a good call", await bed.startSigned(github("{}"), "{}"), [202, "executionId"]],
  ];
  for (const [what, answer, expected] of table) assertEquals(codeOf(answer), expected, what);
  await bed.call("PATCH", `/triggers/${id}`, { enabled: false });
  assertEquals(codeOf(await bed.startSigned(github("{"), "{")), [403, "trigger_disabled"]);
  assertEquals((await bed.startSigned({}, "{")).status, 401);
  assertEquals(await countOf(bed), 1);
});

Deno.test("signed trigger: a wrong signature is answered as an unknown trigger, and stores nothing", async () => {
  await using bed = await WebhookBed.open();
  await signed(bed);
  const { key } = await bed.trigger({ name: "keyed" });
  const { id } = await signed(bed, {}, { name: "revoked" });
  const secrets = await secretsOf(bed, id);
  for (const one of secrets) await bed.call("DELETE", `/triggers/${id}/secrets/${one.id}`);
  const before = (await bed.call("GET", "/audit")).body.items.length;
  const wrong = github(BODY, { secret: "another secret" });
  const answers = [
    await bed.startSigned(wrong, BODY),
    await bed.startSigned({}, BODY),
    await bed.startSigned(github(BODY), BODY, "unknown"),
    await bed.startSigned(github(BODY), BODY, "keyed"),
    await bed.startSigned(github(BODY), BODY, "revoked"),
    await bed.startSigned(github(BODY), BODY, ""),
  ];
  const shape = ({ status, headers, body: { requestId: _, ...body } }: Seen) => ({ status, headers, body });
  assertEquals(answers.map(shape), answers.map(() => shape(answers[0] ?? answers[1] as Seen)));
  assertEquals(codeOf(answers[0] as Seen), [401, "unauthorized"]);
  assertEquals(await countOf(bed), 0);
  assertEquals((await bed.call("GET", "/audit")).body.items.length, before);
  // Nor does a bearer key open a signed trigger.
  assertEquals((await bed.start("svct_unknown", BODY)).status, 401);
  assertEquals(codeOf(await bed.start(key, BODY)), [404, "not_found"]);
  const { counters } = await bed.service.metrics();
  assertEquals(
    Object.entries(counters).filter(([name]) => name.startsWith("signature_refusals")),
    [
      ["signature_refusals.wrong_signature", 1],
      ["signature_refusals.missing_header", 1],
      ["signature_refusals.no_secret", 1],
    ],
  );
  const lines = bed.log.filter((line) => line.includes("Signature of a trigger call refused"));
  assertEquals([lines.length, lines[0]?.includes('trigger: "order-intake"')], [3, true]);
  assertEquals(bed.log.some((line) => line.includes(SECRET)), false);
});

Deno.test("signed trigger: the ping of GitHub is answered and starts nothing", async () => {
  await using bed = await WebhookBed.open();
  await signed(bed);
  const body = '{"zen":"Keep it logically awesome."}';
  const ping = { ...github(body), "x-github-event": "ping" };
  const answer = await bed.startSigned(ping, body);
  assertEquals([answer.status, answer.body as object, await countOf(bed)], [202, {}, 0]);
  assertEquals((await bed.startSigned({ ...ping, "content-type": "text/plain" }, body)).status, 415);
  assertEquals((await bed.startSigned({ ...ping, "x-hub-signature-256": "sha256=0" }, body)).status, 401);
});

Deno.test("signed trigger: two secrets live during a rotation, and the old one until it is revoked", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await signed(bed);
  const call = async (secret: string, id: string) =>
    (await bed.startSigned(github(BODY, { secret, id }), BODY)).status;
  const { body: second } = await bed.call("POST", `/triggers/${id}/rotate`);
  assertEquals([await call(SECRET, "1"), await call(second.secret, "2")], [202, 202]);
  const { body: third } = await bed.call("POST", `/triggers/${id}/rotate`, { secret: "given by hand" });
  assertEquals(third.secret, undefined);
  assertEquals(
    [await call(SECRET, "3"), await call(second.secret, "4"), await call("given by hand", "5")],
    [401, 202, 202],
  );
  const secrets = await secretsOf(bed, id);
  assertEquals(secrets.length, 2);
  await bed.call("DELETE", `/triggers/${id}/secrets/${secrets[1]?.id}`);
  assertEquals([await call(second.secret, "6"), await call("given by hand", "7")], [401, 202]);
});

Deno.test("signed trigger: a secret that cannot be opened refuses no call whose signature is that of the other", async () => {
  let isLost = false;
  await using bed = await WebhookBed.open({
    store: (store) =>
      storeWith(store, [
        instead(findSignedTrigger, async (call) => {
          const trigger = await call();
          if (!isLost || trigger === undefined) return trigger;
          const [newest, ...older] = trigger.secrets ?? [];
          const lost = newest && { ...newest, sealed: { ...newest.sealed, keyId: "lost" } };
          return { ...trigger, secrets: [...lost === undefined ? [] : [lost], ...older] };
        }),
      ]),
  });
  const { id } = await signed(bed);
  await bed.call("POST", `/triggers/${id}/rotate`, { secret: "the newer secret" });
  isLost = true;
  const old = await bed.startSigned(github(BODY), BODY);
  const newer = await bed.startSigned(github(BODY, { secret: "the newer secret", id: "2" }), BODY);
  assertEquals([old.status, codeOf(newer)], [202, [503, "store_unavailable"]]);
  assertEquals(bed.log.some((line) => line.includes('encrypted with the key "lost"')), true);
});

Deno.test("signed trigger: concurrent calls of one delivery are one execution", async () => {
  await using bed = await WebhookBed.open();
  await signed(bed);
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => bed.startSigned(github(BODY), BODY)),
  );
  assertEquals(new Set(answers.map(({ status, body }) => `${status} ${body.executionId}`)).size, 1);
  assertEquals([answers.filter(isReplay).length, await countOf(bed)], [199, 1]);
});
