import { assert, assertEquals } from "#assert";
import type { TriggerVerification } from "../../../../src/webhooks/model/records.ts";
import { weaknessOf } from "../../../../src/webhooks/model/signed_delivery.ts";
import { schemeOf } from "../../../../src/webhooks/model/signature_scheme.ts";
import { knownParts } from "../../../../src/webhooks/model/signed_template.ts";
import { signatureRefusal } from "../../../../src/webhooks/model/trigger_verification.ts";
import { SIGNATURE_PRESETS } from "../../../../src/webhooks/resources/signature_presets.ts";
import { TRIGGER_VERIFICATION } from "../../../../src/webhooks/resources/trigger_verification.ts";
import {
  SIGNATURE_VECTORS,
  type SignatureVector,
  storedSignatureVectors,
} from "../../../harness/signature_vectors.ts";

const VECTORS = await storedSignatureVectors();

function verificationOf({ scheme, header, prefix, timestampHeader }: SignatureVector): TriggerVerification {
  return { scheme, header, prefix, timestampHeader };
}

function refusalOf(vector: SignatureVector) {
  const { headers, body, target, publicUrl, secret, at } = vector;
  const call = { target, headers: new Map(Object.entries(headers)), body: new TextEncoder().encode(body) };
  return signatureRefusal(verificationOf(vector), call, { secrets: [secret], now: at * 1_000, publicUrl });
}

Deno.test("signature vectors: the file is what its generator makes, and has each scheme that a provider defines", () => {
  assertEquals(VECTORS, SIGNATURE_VECTORS);
  const schemes = new Set(VECTORS.map(({ scheme }) => scheme));
  // It has a certificate in place of a secret.
  assertEquals(Object.keys(SIGNATURE_PRESETS).filter((name) => !schemes.has(name as "github")), ["sns"]);
  const described = ["hmac-sha256", "custom", "token"];
  const known = [...Object.keys(SIGNATURE_PRESETS), ...described].toSorted();
  assertEquals(TRIGGER_VERIFICATION.scheme.choices.toSorted(), known);
});

for (const [index, vector] of VECTORS.entries()) {
  const { scheme, source = "node:crypto", at } = vector;
  Deno.test(`signature vectors: ${index} ${scheme}, ${source}`, async () => {
    assertEquals(await refusalOf(vector), undefined);
    const { algorithm = "hmac-sha256", time, shownIn } = schemeOf(verificationOf(vector));
    const isSigned = algorithm !== "token" && algorithm !== "basic";
    const body = `${vector.body} `;
    assertEquals(await refusalOf({ ...vector, body }), isSigned ? "wrong_signature" : undefined);
    const other = algorithm === "ed25519"
      ? "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
      : vector.secret.startsWith("whsec_")
      ? "whsec_AAAAAAAAAAAAAAAA"
      : "other:secret";
    assertEquals(await refusalOf({ ...vector, secret: other }), "wrong_signature");
    if (shownIn === undefined) {
      assertEquals(await refusalOf({ ...vector, headers: {} }), "missing_header");
    }
    if (time === undefined) return;
    assertEquals(await refusalOf({ ...vector, at: at + 300 }), undefined);
    assertEquals(await refusalOf({ ...vector, at: at + 301 }), "too_old");
    assertEquals(await refusalOf({ ...vector, at: at - 301 }), "too_new");
  });
}

Deno.test("signature vectors: a signed URL is that of the setting", async () => {
  const square = VECTORS.find(({ scheme }) => scheme === "square");
  assert(square !== undefined);
  const { publicUrl: _, ...without } = square;
  assertEquals(await refusalOf(without), "no_public_url");
  assertEquals(await refusalOf({ ...square, publicUrl: "http://webhook.site" }), "wrong_signature");
  assertEquals(await refusalOf({ ...square, target: `${square.target}?a=b` }), "wrong_signature");
});

Deno.test("signature vectors: templates are valid, headers in lower case, and only Intercom is weak", () => {
  for (const [name, preset] of Object.entries(SIGNATURE_PRESETS)) {
    assert(knownParts(preset.signed).some(({ kind }) => kind === "body"), name);
    assertEquals(preset.signature.header, preset.signature.header.toLowerCase());
    assertEquals(weaknessOf({ scheme: name as "github" }) !== undefined, name === "intercom", name);
  }
});

/** Headers that show the secret "user:pass word", and whether they do. */
const SHOWN: readonly (readonly [scheme: "token" | "basic", value: string, refusal: string | undefined])[] = [
  ["token", "Token user:pass word", undefined],
  ["token", "token user:pass word", "malformed_header"],
  ["token", "Token user:pass wor", "wrong_signature"],
  ["token", "Token user:pass word ", "wrong_signature"],
  ["token", "Token USER:pass word", "wrong_signature"],
  ["token", "Token ", "malformed_header"],
  ["token", "", "malformed_header"],
  ["token", `Token ${"x".repeat(5_000)}`, "malformed_header"],
  ["token", "Token \u0131user:pass word", "wrong_signature"],
  ["basic", "Basic dXNlcjpwYXNzIHdvcmQ=", undefined],
  ["basic", "BASIC dXNlcjpwYXNzIHdvcmQ=", undefined],
  ["basic", "Basic dXNlcjpwYXNzIHdvcmQ", "wrong_signature"],
  ["basic", "Basic  dXNlcjpwYXNzIHdvcmQ=", "wrong_signature"],
  ["basic", "Basic user:pass word", "wrong_signature"],
  ["basic", "Basic", "malformed_header"],
  ["basic", "Digest dXNlcjpwYXNzIHdvcmQ=", "malformed_header"],
];

/** Bodies, and why they are refused with the secret "cliënt state". */
const SHOWN_IN_BODY: readonly (readonly [body: string, refusal: string | undefined])[] = [
  ['{"value":[{"clientState":"cliënt state"}]}', undefined],
  ['{"value":[{"clientState":"cli\\u00ebnt state"},{"clientState":"cliënt state"}]}', undefined],
  ['{"value":[{"clientState":"cliënt stat"}]}', "wrong_signature"],
  ['{"value":[{"clientState":"cli\\u01ebnt state"}]}', "wrong_signature"],
  ['{"value":[{"clientState":"cliënt state"},{"clientState":"other"}]}', "malformed_message"],
  ['{"value":[{"clientState":"cliënt state"},{}]}', "malformed_message"],
  ['{"value":[{"clientState":"cliënt state"},null]}', "malformed_message"],
  ['{"value":[{"clientState":["cliënt state"]}]}', "malformed_message"],
  ['{"value":[{"clientState":""}]}', "malformed_message"],
  [`{"value":[{"clientState":"${"x".repeat(1_025)}"}]}`, "malformed_message"],
  ['{"value":[{}]}', "malformed_message"],
  ['{"value":[]}', "malformed_message"],
  ['{"value":{"0":{"clientState":"cliënt state"}}}', "malformed_message"],
  ['{"clientState":"cliënt state"}', "malformed_message"],
  ["[]", "malformed_message"],
  ["", "malformed_message"],
];

Deno.test("signature vectors: a secret in the body is that of every item", async () => {
  for (const [body, expected] of SHOWN_IN_BODY) {
    const vector = { scheme: "microsoft", secret: "cliënt state", headers: {}, body, at: 0 } as const;
    assertEquals(await refusalOf(vector), expected, body.slice(0, 100));
  }
});

Deno.test("signature vectors: a shown secret is compared as a whole", async () => {
  for (const [scheme, value, expected] of SHOWN) {
    const header = scheme === "token" ? "x-token" : "authorization";
    const vector = { scheme, header, prefix: "Token ", secret: "user:pass word", body: "{}", at: 0 };
    assertEquals(await refusalOf({ ...vector, headers: { [header]: value } }), expected, value.slice(0, 100));
  }
  // The body is hashed behind the secret, and must not complete it.
  const short = {
    scheme: "token",
    header: "x-token",
    secret: "secret{}",
    headers: { "x-token": "secret" },
  } as const;
  assertEquals(await refusalOf({ ...short, body: "{}", at: 0 }), "wrong_signature");
});
