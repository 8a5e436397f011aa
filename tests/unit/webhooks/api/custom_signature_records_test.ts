import { assertEquals } from "#assert";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const BASE = { name: "order-intake", workflow: "order-intake" };
const GENERIC = { scheme: "hmac-sha256", header: "X-Sign" };
const SIGNATURE = { header: "X-Sign" };
const CUSTOM = { scheme: "custom", signed: "{body}", signature: SIGNATURE };
const TIMED = { ...CUSTOM, signed: "{time}{body}" };
const TIME_FORMS = "expected one of header, prefix and field";
const PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/** Sent bodies, the field that is refused, and why. */
const WRONG_FIELDS: readonly (readonly [unknown, string, string])[] = [
  [{ scheme: "custom", signature: SIGNATURE }, "verify.signed", "it is required"],
  [{ scheme: "custom", signed: "{body}" }, "verify.signature", "it is required"],
  [
    { ...CUSTOM, signed: "{time" },
    "verify.signed",
    "unexpected { at character 1; expected a placeholder such as {body}",
  ],
  [
    { ...CUSTOM, signed: `{body}${"x".repeat(256)}` },
    "verify.signed",
    "expected a text of at most 256 characters",
  ],
  [{ ...CUSTOM, signature: {} }, "verify.signature.header", "it is required"],
  [{ ...CUSTOM, signature: "X-Sign" }, "verify.signature", "expected a JSON object"],
  [
    { ...CUSTOM, signature: { header: "a, b, c, d, e" } },
    "verify.signature.header",
    "expected at most 4 headers",
  ],
  [
    { ...CUSTOM, signature: { header: "a,  b" } },
    "verify.signature.header",
    "expected 1 to 64 letters, digits and -",
  ],
  [
    { ...CUSTOM, signature: { header: "a, Host" } },
    "verify.signature.header",
    "expected a header that HTTP does not define",
  ],
  [
    { ...CUSTOM, signature: { ...SIGNATURE, list: "::" } },
    "verify.signature.list",
    'expected a separator: ",", ";", "|" or " "',
  ],
  [
    { ...CUSTOM, signature: { ...SIGNATURE, encoding: "base32" } },
    "verify.signature.encoding",
    "expected one of hex, base64, base64url",
  ],
  [
    { ...CUSTOM, signature: { ...SIGNATURE, a: 1 } },
    "verify.signature.a",
    "unknown; expected header, prefix, encoding, list",
  ],
  [
    { ...CUSTOM, header: "x-a" },
    "verify.header",
    "the scheme custom does not have it; expected signed, algorithm, secretEncoding, signature, time, id",
  ],
  [
    { ...GENERIC, signed: "{body}" },
    "verify.signed",
    "the scheme hmac-sha256 does not have it; expected header, prefix, encoding, timestampHeader, idempotencyHeader",
  ],
  [{ scheme: "github", time: {} }, "verify.time", "the scheme github defines it"],
  [
    { ...CUSTOM, algorithm: "md5" },
    "verify.algorithm",
    "expected one of hmac-sha256, hmac-sha512, hmac-sha1, ed25519",
  ],
  [TIMED, "verify.signed", "{time} requires verify.time.header or verify.time.prefix"],
  [
    { ...TIMED, time: { field: "sent" } },
    "verify.signed",
    "{time} requires verify.time.header or verify.time.prefix",
  ],
  [
    { ...CUSTOM, time: { header: "x-time" } },
    "verify.signed",
    "expected {time}: without it, verify.time is not signed",
  ],
  [{ ...TIMED, time: {} }, "verify.time", TIME_FORMS],
  [{ ...TIMED, time: { header: "x-time", field: "sent" } }, "verify.time", TIME_FORMS],
  [{ ...TIMED, time: { header: "x-a, x-sign" } }, "verify.time.header", "it is the header of the signature"],
  [{ ...TIMED, time: { prefix: "t=" } }, "verify.time.prefix", "it requires verify.signature.list"],
  [
    { ...TIMED, signature: { ...SIGNATURE, list: ",", prefix: "t=" }, time: { prefix: "t=" } },
    "verify.time.prefix",
    "it is the text before the signature",
  ],
  [
    { ...TIMED, time: { header: "x-time", unit: "days" } },
    "verify.time.unit",
    "expected one of seconds, milliseconds",
  ],
  [{ ...CUSTOM, time: { field: "a..b" } }, "verify.time.field", "expected a path such as id or event.id"],
  [{ ...CUSTOM, toleranceSeconds: 9 }, "verify.toleranceSeconds", "no time is signed"],
  [{ ...CUSTOM, signed: "{id}{body}" }, "verify.signed", "{id} requires verify.id.header"],
  [
    { ...CUSTOM, signed: "{id}{body}", id: { field: "id" } },
    "verify.signed",
    "{id} requires verify.id.header",
  ],
  [{ ...CUSTOM, id: {} }, "verify.id", "expected one of header and field"],
  [{ ...CUSTOM, signed: "{url}{body}" }, "verify.signed", "{url} requires the setting TRIGGER_PUBLIC_URL"],
  [{ ...CUSTOM, algorithm: "ed25519" }, "verify.secret", "it is required: the public key of the sender"],
  [
    { ...CUSTOM, algorithm: "ed25519", secret: "not a public key" },
    "verify.secret",
    "expected a public key of 32 bytes in hex or base64",
  ],
  [
    { ...CUSTOM, algorithm: "ed25519", secretEncoding: "base64", secret: PUBLIC_KEY },
    "verify.secretEncoding",
    "the secret of ed25519 is a public key in hex or base64",
  ],
  [{ ...CUSTOM, secretEncoding: "base64", secret: "not base64!" }, "verify.secret", "expected base64"],
  [
    { ...CUSTOM, secretEncoding: "base64", secret: "c2VjcmV0" },
    "verify.secret",
    "expected at least 8 bytes in base64",
  ],
];

/** As `WRONG_FIELDS`, for schemes that a provider defines. */
const WRONG_PRESETS: typeof WRONG_FIELDS = [
  [
    { scheme: "square" },
    "verify.scheme",
    "square signs the URL, which requires the setting TRIGGER_PUBLIC_URL",
  ],
  [{ scheme: "slack", header: "x-a" }, "verify.header", "the scheme slack defines it"],
  [{ scheme: "gitlab", toleranceSeconds: 9 }, "verify.toleranceSeconds", "no time is signed"],
  [{ scheme: "grafana", toleranceSeconds: 9 }, "verify.toleranceSeconds", "no time is signed"],
  [
    { scheme: "grafana", header: "x-a" },
    "verify.header",
    "the scheme grafana does not have it; expected timestampHeader",
  ],
  [{ scheme: "token" }, "verify.header", "it is required"],
  [
    { scheme: "token", header: "x-a", encoding: "hex" },
    "verify.encoding",
    "the scheme token does not have it; expected header, prefix, idempotencyHeader",
  ],
  [{ scheme: "basic" }, "verify.secret", "it is required: user:password"],
  [{ scheme: "basic", secret: "without colon" }, "verify.secret", "expected user:password"],
  [{ scheme: "basic", secret: "without-password:" }, "verify.secret", "expected user:password"],
  [{ scheme: "discord" }, "verify.secret", "it is required: the public key of the sender"],
  [
    { scheme: "discord", secret: "not a public key" },
    "verify.secret",
    "expected a public key of 32 bytes in hex or base64",
  ],
  [{ scheme: "clerk", secret: "c2VjcmV0c2VjcmV0" }, "verify.secret", "expected whsec_ followed by base64"],
];

Deno.test("custom signatures: a custom signature is stored as it is described, with its defaults", async () => {
  await using bed = await WebhookBed.open({ parts: { publicUrl: "https://hooks.example.com" } });
  const shown = async (verify: unknown) =>
    (await bed.trigger({ name: `t-${crypto.randomUUID()}`, verify }))["verify"];
  const defaults = { algorithm: "hmac-sha256", secretEncoding: "text" };
  assertEquals(await shown(CUSTOM), {
    ...CUSTOM,
    ...defaults,
    signature: { header: "x-sign", encoding: "hex" },
  });
  const whole = {
    scheme: "custom",
    signed: "{id}.{time}.{url}.{body}",
    algorithm: "hmac-sha512",
    secretEncoding: "base64",
    signature: { header: "X-New,X-Old", prefix: "v1,", encoding: "base64url", list: " " },
    time: { header: "X-Time, X-Old-Time", unit: "milliseconds" },
    id: { header: "X-Id" },
    toleranceSeconds: 60,
    secret: "c2VjcmV0c2VjcmV0",
  };
  const { secret: _, ...stored } = whole;
  assertEquals(await shown(whole), {
    ...stored,
    signature: { ...whole.signature, header: "x-new, x-old" },
    time: { ...whole.time, header: "x-time, x-old-time" },
    id: { header: "x-id" },
  });
  const field = { ...CUSTOM, time: { field: "sent_at" }, id: { field: "event.id" } };
  assertEquals(await shown(field), {
    ...field,
    ...defaults,
    signature: { header: "x-sign", encoding: "hex" },
    time: { field: "sent_at", unit: "seconds" },
    toleranceSeconds: 300,
  });
  const key = await shown({ ...CUSTOM, algorithm: "ed25519", secret: PUBLIC_KEY });
  assertEquals(key, { ...CUSTOM, algorithm: "ed25519", signature: { header: "x-sign", encoding: "hex" } });
});

Deno.test("custom signatures: a weak hash has a warning, and secrets keep their form", async () => {
  await using bed = await WebhookBed.open();
  const weak = { ...CUSTOM, algorithm: "hmac-sha1" };
  const warning = "HMAC-SHA1 is weak: use another algorithm if the sender offers one";
  const made = await bed.trigger({ verify: weak });
  assertEquals(made["warning"], warning);
  const patch = (verify: unknown) => bed.call("PATCH", `/triggers/${made.id}`, { verify });
  const refusals = [
    [
      await patch({ ...CUSTOM, algorithm: "ed25519" }),
      "verify.algorithm",
      "its secrets have another form; create another trigger",
    ],
    [
      await patch({ ...CUSTOM, secretEncoding: "base64" }),
      "verify.secretEncoding",
      "it cannot be changed, and is text",
    ],
  ] as const;
  for (const [{ status, body }, field, reason] of refusals) {
    assertEquals([status, body.field, body["detail"]], [422, field, `Cannot use "${field}": ${reason}`]);
  }
  const { body: changed } = await patch(CUSTOM);
  assertEquals([changed["warning"], changed["verify"]], [undefined, {
    ...CUSTOM,
    algorithm: "hmac-sha256",
    secretEncoding: "text",
    signature: { header: "x-sign", encoding: "hex" },
  }]);
  const key = await bed.trigger({
    name: "key",
    verify: { ...CUSTOM, algorithm: "ed25519", secret: PUBLIC_KEY },
  });
  const rotated = await bed.call("POST", `/triggers/${key.id}/rotate`);
  assertEquals([rotated.status, rotated.body.field], [422, "secret"]);
});

Deno.test("custom signatures: a wrong field is named", async () => {
  await using bed = await WebhookBed.open();
  for (const [verify, field, reason] of [...WRONG_FIELDS, ...WRONG_PRESETS]) {
    const { status, body } = await bed.call("POST", "/triggers", { ...BASE, verify });
    const expected = [422, "invalid_field", field, `Cannot use "${field}": ${reason}`];
    assertEquals([status, body.code, body.field, body["detail"]], expected);
  }
  assertEquals((await bed.call("GET", "/triggers")).body.items, []);
});
