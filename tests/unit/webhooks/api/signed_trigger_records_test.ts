import { assertEquals, assertMatch } from "#assert";
import { findTrigger } from "../../../../src/webhooks/store/operations/triggers.ts";
import { type Body, WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const SECRET = "It's a Secret to Everybody";
const BASE = { name: "order-intake", workflow: "order-intake" };
const GENERIC = { scheme: "hmac-sha256", header: "X-Sign" };

Deno.test("signed triggers: a generated secret is shown once, a given one never", async () => {
  await using bed = await WebhookBed.open();
  const made = await bed.trigger({ verify: { scheme: "github" } });
  const { secret, secrets, keys, verify, id } = made;
  assertMatch(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assertEquals([keys, verify, made.key], [[], { scheme: "github" }, undefined]);
  assertEquals((secrets as Body[]).map((one) => Object.keys(one)), [["id", "createdAt"]]);
  const given = await bed.trigger({ name: "given", verify: { scheme: "stripe", secret: SECRET } });
  const { body: rotated } = await bed.call("POST", `/triggers/${given.id}/rotate`, {
    secret: "another given one",
  });
  const { body: generated } = await bed.call("POST", `/triggers/${id}/rotate`);
  assertMatch(generated.secret, /^whsec_/);
  assertEquals(generated["secretId"], (generated["secrets"] as Body[])[0]?.id);
  const texts = [
    given,
    rotated,
    (await bed.call("GET", "/triggers")).body,
    (await bed.call("GET", `/triggers/${id}`)).body,
    (await bed.call("GET", "/audit")).body,
    bed.log,
  ].map((one) => JSON.stringify(one));
  for (const hidden of [SECRET, "another given one", secret, generated.secret]) {
    assertEquals(texts.filter((text) => text.includes(hidden)), [], hidden);
  }
  const stored = JSON.stringify(await bed.store.read(findTrigger, id));
  assertEquals(stored.includes(secret), false);
});

Deno.test("signed triggers: what a scheme leaves open has a default, and is shown", async () => {
  await using bed = await WebhookBed.open();
  const table: readonly (readonly [Record<string, unknown>, Record<string, unknown>])[] = [
    [{ scheme: "github" }, { scheme: "github" }],
    [{ scheme: "shopify" }, { scheme: "shopify" }],
    [{ scheme: "stripe" }, { scheme: "stripe", toleranceSeconds: 300 }],
    [{ scheme: "standard-webhooks", toleranceSeconds: 60 }, {
      scheme: "standard-webhooks",
      toleranceSeconds: 60,
    }],
    [GENERIC, { scheme: "hmac-sha256", header: "x-sign", encoding: "hex" }],
    [
      {
        ...GENERIC,
        prefix: "HMAC ",
        encoding: "base64",
        timestampHeader: "X-Time",
        idempotencyHeader: "X-Id",
      },
      {
        scheme: "hmac-sha256",
        header: "x-sign",
        prefix: "HMAC ",
        encoding: "base64",
        timestampHeader: "x-time",
        idempotencyHeader: "x-id",
        toleranceSeconds: 300,
      },
    ],
  ];
  for (const [index, [verify, expected]] of table.entries()) {
    const { id, verify: shown } = await bed.trigger({ name: `t-${index}`, verify });
    assertEquals(shown, expected);
    assertEquals((await bed.call("GET", `/triggers/${id}`)).body["verify"], expected);
  }
});

/** Sent bodies, the field that is refused, and why. */
const WRONG_FIELDS: readonly (readonly [unknown, string, string])[] = [
  ["github", "verify", "expected a JSON object"],
  [
    {},
    "verify.scheme",
    "it is required",
  ],
  [
    { scheme: "unknown" },
    "verify.scheme",
    "expected one of github, stripe, shopify, standard-webhooks, hmac-sha256, custom, svix, clerk, resend, slack, " +
    "zoom, paddle, square, calendly, mux, pagerduty, linear, intercom, grafana, discord, gitlab, microsoft, token, basic, " +
    "sns",
  ],
  [
    { scheme: "github", key: "x" },
    "verify.key",
    "unknown; expected scheme, header, prefix, encoding, timestampHeader, toleranceSeconds, " +
    "idempotencyHeader, topics, signed, algorithm, secretEncoding, signature, time, id, secret",
  ],
  [{ scheme: "github", header: "x-a" }, "verify.header", "the scheme github defines it"],
  [{ scheme: "shopify", encoding: "hex" }, "verify.encoding", "the scheme shopify defines it"],
  [{ scheme: "stripe", timestampHeader: "a" }, "verify.timestampHeader", "the scheme stripe defines it"],
  [{ scheme: "github", toleranceSeconds: 9 }, "verify.toleranceSeconds", "no time is signed"],
  [{ ...GENERIC, toleranceSeconds: 9 }, "verify.toleranceSeconds", "no time is signed"],
  [
    { scheme: "stripe", toleranceSeconds: 0 },
    "verify.toleranceSeconds",
    "expected an integer from 1 to 86400",
  ],
  [{ scheme: "hmac-sha256" }, "verify.header", "it is required"],
  [{ ...GENERIC, header: "" }, "verify.header", "expected 1 to 64 letters, digits and -"],
  [{ ...GENERIC, header: "a b" }, "verify.header", "expected 1 to 64 letters, digits and -"],
  ...["Content-Length", "host", "content-type", "transfer-encoding"].map((header) =>
    [
      { ...GENERIC, header },
      "verify.header",
      "expected a header that HTTP does not define",
    ] as const
  ),
  [
    { ...GENERIC, timestampHeader: "content-length" },
    "verify.timestampHeader",
    "expected a header that HTTP does not define",
  ],
  [
    { ...GENERIC, idempotencyHeader: "Content-Length" },
    "verify.idempotencyHeader",
    "expected a header that HTTP does not define",
  ],
  [
    { scheme: "standard-webhooks", secret: "whsec_AAAA" },
    "verify.secret",
    "expected at least 8 bytes in base64",
  ],
  [{ ...GENERIC, prefix: "ü" }, "verify.prefix", "expected at most 64 printable ASCII characters"],
  [{ ...GENERIC, encoding: "binary" }, "verify.encoding", "expected one of hex, base64"],
  [
    { ...GENERIC, timestampHeader: "x-SIGN" },
    "verify.timestampHeader",
    "it is the header of the signature",
  ],
  [{ scheme: "sns" }, "verify.topics", "it is required"],
  [{ scheme: "sns", topics: [] }, "verify.topics", "expected a list of 1 to 16 texts"],
  ...[
    "orders",
    "arn:aws:sqs:us-east-1:123456789012:orders",
    "arn:aws:sns:us-east-1.evil.test/:123456789012:orders",
    "arn:aws:sns:us-east-1:123456789012:orders:2cbaae4d-d015-44da-860c-dad302d554aa",
    "arn:aws:sns:us-east-1:123456789012:*",
    "arn:evil:sns:us-east-1:123456789012:orders",
  ].map((topic) =>
    [
      { scheme: "sns", topics: [topic] },
      "verify.topics[0]",
      "expected the ARN of a topic such as arn:aws:sns:us-east-1:123456789012:orders",
    ] as const
  ),
  [
    { scheme: "sns", topics: ["arn:aws:sns:us-east-1:123456789012:orders"], secret: SECRET },
    "verify.secret",
    "the scheme sns has none: the sender has a certificate",
  ],
  [
    { scheme: "github", topics: ["arn:aws:sns:us-east-1:123456789012:orders"] },
    "verify.topics",
    "the scheme github defines it",
  ],
  [{ scheme: "github", secret: "" }, "verify.secret", "expected at least 8 characters"],
  [{ scheme: "github", secret: "short" }, "verify.secret", "expected at least 8 characters"],
  [
    { scheme: "github", secret: "line\nbreak" },
    "verify.secret",
    "expected a text without control characters",
  ],
  [
    { scheme: "github", secret: "x".repeat(1_025) },
    "verify.secret",
    "expected a text of at most 1024 characters",
  ],
  ...[" It's a Secret", "It's a Secret ", "\u00a0It's a Secret", "        "].map((secret) =>
    [{ scheme: "github", secret }, "verify.secret", "it begins or ends with a blank"] as const
  ),
  ...["whsec_", "whsec_?", "c2VjcmV0c2VjcmV0", "v1,c2VjcmV0c2VjcmV0", "v2,whsec_c2VjcmV0"].map((secret) =>
    [
      { scheme: "standard-webhooks", secret },
      "verify.secret",
      secret.length < 8 ? "expected at least 8 characters" : "expected whsec_ followed by base64",
    ] as const
  ),
];

Deno.test("signed triggers: a wrong field is named", async () => {
  await using bed = await WebhookBed.open();
  for (const [verify, field, reason] of WRONG_FIELDS) {
    const { status, body } = await bed.call("POST", "/triggers", { ...BASE, verify });
    const expected = [422, "invalid_field", field, `Cannot use "${field}": ${reason}`];
    assertEquals([status, body.code, body.field, body["detail"]], expected);
  }
  assertEquals((await bed.call("GET", "/triggers")).body.items, []);
});

Deno.test("signed triggers: sns has topics in place of a secret, and they can be changed", async () => {
  await using bed = await WebhookBed.open();
  const topics = [
    "arn:aws:sns:us-east-1:123456789012:orders",
    "arn:aws-cn:sns:cn-north-1:123456789012:a_b-C",
  ];
  const { id, verify, ...made } = await bed.trigger({ verify: { scheme: "sns", topics } });
  assertEquals(verify, { scheme: "sns", topics, toleranceSeconds: 3_600 });
  assertEquals([made.keys, made["secrets"], made.secret, made.key], [[], [], undefined, undefined]);
  const rotated = await bed.call("POST", `/triggers/${id}/rotate`);
  assertEquals([rotated.status, rotated.body.field], [422, "secret"]);
  const changed = { scheme: "sns", topics: topics.slice(1), toleranceSeconds: 60 };
  const { body } = await bed.call("PATCH", `/triggers/${id}`, { verify: changed });
  assertEquals(body["verify"], changed);
});

Deno.test("signed triggers: a change replaces the verification, but neither the scheme nor the secrets", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger({ verify: { ...GENERIC, prefix: "a" } });
  const { id: keyed } = await bed.trigger({ name: "keyed" });
  const patch = (verify: unknown, of = id) => bed.call("PATCH", `/triggers/${of}`, { verify });
  const changed = await patch({ ...GENERIC, header: "X-Other", timestampHeader: "X-Time" });
  assertEquals(changed.body["verify"], {
    scheme: "hmac-sha256",
    header: "x-other",
    encoding: "hex",
    timestampHeader: "x-time",
    toleranceSeconds: 300,
  });
  const refusals = [
    [await patch({ scheme: "github" }), "verify.scheme", "it cannot be changed, and is hmac-sha256"],
    [await patch({ ...GENERIC, secret: SECRET }), "verify.secret", undefined],
    [await patch(null), "verify", "expected a JSON object"],
    [await patch({ scheme: "github" }, keyed), "verify", "the calls of this trigger show a key"],
  ] as const;
  for (const [{ status, body }, field, reason] of refusals) {
    assertEquals([status, body.field], [422, field]);
    if (reason !== undefined) assertEquals(body["detail"], `Cannot use "${field}": ${reason}`);
  }
  assertEquals((await patch({ scheme: "github" }, crypto.randomUUID())).status, 404);
  const { items } = (await bed.call("GET", "/audit?event=trigger.changed")).body;
  assertEquals(items.map(({ details }) => details), [{ fields: ["verify"] }]);
});

Deno.test("signed triggers: secrets are rotated and revoked, and audited by their identifiers", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger({ verify: { scheme: "standard-webhooks" } });
  const { id: keyed } = await bed.trigger({ name: "keyed" });
  const path = `/triggers/${id}`;
  const rotate = (body: unknown, of = path) => bed.call("POST", `${of}/rotate`, body);
  const second = (await rotate({})).body;
  const wrong = [
    [await rotate({ secret: "not of the scheme" }), 422, "secret"],
    [await rotate({ secret: SECRET }, `/triggers/${keyed}`), 422, "secret"],
    [await rotate({ activeIn: "0" }), 422, "activeIn"],
    [await rotate({}, `/triggers/${crypto.randomUUID()}`), 404, undefined],
  ] as const;
  for (const [{ status, body }, expected, field] of wrong) {
    assertEquals([status, body.field], [expected, field]);
  }
  const secretId = second["secretId"];
  assertEquals((await bed.call("DELETE", `${path}/secrets/${secretId}`)).status, 204);
  assertEquals((await bed.call("DELETE", `${path}/secrets/${secretId}`)).status, 404);
  assertEquals((await bed.call("DELETE", `${path}/keys/${secretId}`)).status, 404);
  const { items } = (await bed.call("GET", "/audit")).body;
  assertEquals(items.map(({ action, details }) => [action, details]), [
    ["trigger.secret_revoked", { secretId }],
    ["trigger.rotated", { secretId }],
    ["trigger.created", { name: "keyed", workflow: "order-intake" }],
    ["trigger.created", { name: "order-intake", workflow: "order-intake", scheme: "standard-webhooks" }],
  ]);
});
