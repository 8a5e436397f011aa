import { assertEquals } from "#assert";
import { createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";
import type { TriggerVerification } from "../../../../src/webhooks/model/records.ts";
import { deliveryIdOf } from "../../../../src/webhooks/model/signed_delivery.ts";
import {
  type SignatureRefusal,
  signatureRefusal,
} from "../../../../src/webhooks/model/trigger_verification.ts";

const NOW = 1_700_000_000;
const SECRET = "a secret of words";
const BODY = '{"event":{"id":"evt_1"},"sent":1700000000123}';
const PUBLIC_URL = "https://hooks.example.com/weir";
const TARGET = "/api/v1/workflows/triggers/t?a=%20b";

type Custom = Omit<TriggerVerification, "scheme">;

interface Given {
  readonly headers: Readonly<Record<string, string>>;
  readonly repeated?: readonly string[];
  readonly body?: string | Uint8Array;
  readonly secrets?: readonly string[];
  readonly publicUrl?: string | undefined;
}

function refusalOf(custom: Custom, given: Given): Promise<SignatureRefusal | undefined> {
  const { headers, repeated, body = BODY, secrets = [SECRET] } = given;
  const publicUrl = "publicUrl" in given ? given.publicUrl : PUBLIC_URL;
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const call = { target: TARGET, headers: new Map(Object.entries(headers)), repeated, body: bytes };
  return signatureRefusal({ scheme: "custom", ...custom }, call, { secrets, now: NOW * 1_000, publicUrl });
}

/** Made with `node:crypto`, so that Web Crypto does not check itself. */
function mac(
  signed: string,
  { hash = "sha256", encoding = "hex", key = SECRET as string | Uint8Array } = {},
): string {
  return createHmac(hash, key).update(signed).digest(encoding as "hex" | "base64" | "base64url");
}

const SIGNATURE = { header: "x-sign" } as const;
const SIGNED_HEADERS = { "x-time": `${NOW}`, "x-id": "a-1", "x-app": "shop" };
const TIME = { header: "x-time" } as const;

Deno.test("custom signatures: every value, hash and encoding is that of node:crypto", async () => {
  const path = `/weir${TARGET}`;
  const table: readonly (readonly [Custom, string, Parameters<typeof mac>[1]?])[] = [
    [{ signed: "{body}", signature: SIGNATURE }, BODY],
    [
      { signed: "{id}.{time}.{body}", signature: SIGNATURE, time: TIME, id: { header: "x-id" } },
      `a-1.${NOW}.${BODY}`,
    ],
    [{ signed: "v0:{time}:{body}", signature: SIGNATURE, time: TIME }, `v0:${NOW}:${BODY}`],
    [{ signed: "{body}{time}", signature: SIGNATURE, time: TIME }, `${BODY}${NOW}`],
    [{ signed: "{url}{body}", signature: SIGNATURE }, `https://hooks.example.com${path}${BODY}`],
    [{ signed: "{method} {path}|{header.X-App}|{body}", signature: SIGNATURE }, `POST ${path}|shop|${BODY}`],
    [
      { signed: "{body}", algorithm: "hmac-sha512", signature: { ...SIGNATURE, encoding: "base64" } },
      BODY,
      { hash: "sha512", encoding: "base64" },
    ],
    [
      { signed: "{body}", algorithm: "hmac-sha512", signature: { ...SIGNATURE, encoding: "base64url" } },
      BODY,
      { hash: "sha512", encoding: "base64url" },
    ],
    [{ signed: "{body}", algorithm: "hmac-sha1", signature: SIGNATURE }, BODY, { hash: "sha1" }],
    [{ signed: "{body}", signature: { ...SIGNATURE, encoding: "base64url" } }, BODY, {
      encoding: "base64url",
    }],
  ];
  for (const [custom, signed, options] of table) {
    const good = { ...SIGNED_HEADERS, "x-sign": mac(signed, options) };
    const other = { ...good, "x-sign": mac(`${signed} `, options) };
    const name = JSON.stringify(custom);
    assertEquals(await refusalOf(custom, { headers: good }), undefined, name);
    assertEquals(await refusalOf(custom, { headers: good, secrets: ["another", SECRET] }), undefined, name);
    assertEquals(await refusalOf(custom, { headers: other }), "wrong_signature", name);
    assertEquals(await refusalOf(custom, { headers: good, body: `${BODY}\n` }), "wrong_signature", name);
  }
});

Deno.test("custom signatures: a base64 secret is the key itself", async () => {
  const key = new Uint8Array(32).fill(7);
  const custom = { signed: "{body}", secretEncoding: "base64", signature: SIGNATURE } as const;
  const headers = { "x-sign": mac(BODY, { key }) };
  assertEquals(await refusalOf(custom, { headers, secrets: [`whsec_${key.toBase64()}`] }), undefined);
});

Deno.test("custom signatures: an Ed25519 signature is checked with the public key of the sender", async () => {
  // The first test of RFC 8032, section 7.1, has this seed.
  const seed = Uint8Array.fromHex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  const der = new Uint8Array([...Uint8Array.fromHex("302e020100300506032b657004220420"), ...seed]);
  const privateKey = createPrivateKey({ key: Buffer.from(der), format: "der", type: "pkcs8" });
  const spki = new Uint8Array(createPublicKey(privateKey).export({ format: "der", type: "spki" }));
  const publicKey = spki.slice(-32);
  assertEquals(publicKey.toHex(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const custom = { signed: "{time}{body}", algorithm: "ed25519", signature: SIGNATURE, time: TIME } as const;
  const signature = new Uint8Array(sign(null, Buffer.from(`${NOW}${BODY}`), privateKey));
  const headers = { "x-time": `${NOW}`, "x-sign": signature.toHex() };
  const flipped = signature.map((byte, index) => index === 0 ? byte ^ 1 : byte);
  const other = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
  const table: readonly (readonly [string, Given, SignatureRefusal | undefined])[] = [
    ["hex", { headers, secrets: [publicKey.toHex()] }, undefined],
    ["base64, second", { headers, secrets: [other, publicKey.toBase64()] }, undefined],
    ["another key", { headers, secrets: [other] }, "wrong_signature"],
    ["another signature", {
      headers: { ...headers, "x-sign": flipped.toHex() },
      secrets: [publicKey.toHex()],
    }, "wrong_signature"],
    [
      "zeros",
      { headers: { ...headers, "x-sign": "0".repeat(128) }, secrets: [publicKey.toHex()] },
      "wrong_signature",
    ],
    ["short", { headers: { ...headers, "x-sign": "00" }, secrets: [publicKey.toHex()] }, "malformed_header"],
    [
      "another time",
      { headers: { ...headers, "x-time": `${NOW + 1}` }, secrets: [publicKey.toHex()] },
      "wrong_signature",
    ],
    ["no key", { headers, secrets: [] }, "no_secret"],
  ];
  for (const [name, given, expected] of table) assertEquals(await refusalOf(custom, given), expected, name);
});

Deno.test("custom signatures: lists, their times and alternative headers", async () => {
  const list = {
    signed: "{time}:{body}",
    signature: { header: "x-new, x-old", prefix: "h1=", list: ";" },
    time: { prefix: "ts=" },
  } as const;
  const good = mac(`${NOW}:${BODY}`);
  const bad = "0".repeat(64);
  const value = `ts=${NOW};h1=${bad};h1=${good}`;
  const table: readonly (readonly [Given["headers"], SignatureRefusal | undefined])[] = [
    [{ "x-new": value }, undefined],
    [{ "x-old": value }, undefined],
    [{ "x-new": value, "x-old": value }, undefined],
    [{ "x-new": value, "x-old": `ts=${NOW};h1=${bad}` }, "malformed_header"],
    [{ "x-new": `h1=${good}` }, "malformed_header"],
    [{ "x-new": `ts=${NOW};ts=${NOW};h1=${good}` }, "malformed_header"],
    [{ "x-new": `ts=${NOW}; h1=${good}` }, "malformed_header"],
    [{ "x-new": `ts=${NOW}${`;h1=${bad}`.repeat(16)};h1=${good}` }, "malformed_header"],
    [{ "x-new": `ts=${NOW}${`;h0=${bad}`.repeat(40)};h1=${good}` }, undefined],
    [{ "x-new": `ts=${NOW}${`;h0=${bad}`.repeat(80)};h1=${good}` }, "malformed_header"],
    [{ "x-new": `ts=${NOW}000;h1=${mac(`${NOW}000:${BODY}`)}` }, "too_new"],
    [{}, "missing_header"],
  ];
  for (const [headers, expected] of table) {
    assertEquals(await refusalOf(list, { headers }), expected, JSON.stringify(headers).slice(0, 200));
  }
  const bare = { signed: "{body}", signature: { ...SIGNATURE, encoding: "base64", list: " " } } as const;
  const two = `${new Uint8Array(32).toBase64()} ${mac(BODY, { encoding: "base64" })}`;
  assertEquals(await refusalOf(bare, { headers: { "x-sign": two } }), undefined);
  assertEquals(await refusalOf(bare, { headers: { "x-sign": ` ${two}` } }), "malformed_header");
});

Deno.test("custom signatures: a time in the body counts once the signature is valid, in its unit", async () => {
  const custom = {
    signed: "{body}",
    signature: SIGNATURE,
    time: { field: "sent", unit: "milliseconds" },
    toleranceSeconds: 60,
  } as const;
  const table: readonly (readonly [string, SignatureRefusal | undefined])[] = [
    [BODY, undefined],
    [`{"sent":"${NOW}000"}`, undefined],
    [`{"sent":${NOW - 60}000}`, undefined],
    [`{"sent":${NOW - 61}999}`, "too_old"],
    [`{"sent":${NOW + 61}000}`, "too_new"],
    [`{"sent":${NOW}}`, "too_old"],
    [`{"sent":-1}`, "malformed_milliseconds"],
    [`{"sent":1.5}`, "malformed_milliseconds"],
    [`{"sent":1e400}`, "malformed_milliseconds"],
    [`{"sent":[${NOW}000]}`, "malformed_milliseconds"],
    ["{}", "malformed_milliseconds"],
    ["null", "malformed_milliseconds"],
    ["not JSON", "malformed_milliseconds"],
    [`{"__proto__":{"sent":${NOW}000}}`, "malformed_milliseconds"],
  ];
  for (const [body, expected] of table) {
    const headers = { "x-sign": mac(body) };
    assertEquals(await refusalOf(custom, { headers, body }), expected, body);
    const wrong = { headers: { "x-sign": "0".repeat(64) }, body };
    assertEquals(await refusalOf(custom, wrong), "wrong_signature", body);
  }
});

Deno.test("custom signatures: hostile headers", async () => {
  const custom = {
    signed: "{id}.{time}.{header.X-App}.{body}",
    signature: SIGNATURE,
    time: TIME,
    id: { header: "x-id, x-other-id" },
  } as const;
  const signed = (app = "shop", id = "a-1") => {
    const bytes = Buffer.from(`${id}.${NOW}.${app}.${BODY}`, "latin1");
    return createHmac("sha256", SECRET).update(bytes).digest("hex");
  };
  const good = { ...SIGNED_HEADERS, "x-sign": signed() };
  const { "x-app": _, ...withoutApp } = good;
  const { "x-id": __, ...withoutId } = good;
  const { "x-time": ___, ...withoutTime } = good;
  const table: readonly (readonly [string, Given, SignatureRefusal | undefined])[] = [
    ["good", { headers: good }, undefined],
    ["no signed header", { headers: withoutApp }, "missing_header"],
    ["no id", { headers: withoutId }, "missing_header"],
    ["no time", { headers: withoutTime }, "missing_header"],
    ["a signed header twice", { headers: good, repeated: ["x-app"] }, "malformed_header"],
    ["the signature twice", { headers: good, repeated: ["x-sign"] }, "malformed_header"],
    ["the time twice", { headers: good, repeated: ["x-time"] }, "malformed_header"],
    ["another header twice", { headers: good, repeated: ["x-more"] }, undefined],
    ["two ids", { headers: { ...good, "x-other-id": "a-2" } }, "malformed_header"],
    ["bytes beyond ASCII as they came", {
      headers: { ...good, "x-app": "\xe9\xff", "x-sign": signed("\xe9\xff") },
    }, undefined],
    ["a NUL instead of nothing", { headers: { ...good, "x-app": "shop\0" } }, "wrong_signature"],
    ["a part moved to another", {
      headers: { ...good, "x-app": `shop.${BODY}`, "x-sign": signed() },
      body: "",
    }, "wrong_signature"],
    [
      "base64 instead of hex",
      { headers: { ...good, "x-sign": Uint8Array.fromHex(signed()).toBase64() } },
      "malformed_header",
    ],
    [
      "hex of another hash",
      { headers: { ...good, "x-sign": mac(BODY, { hash: "sha512" }) } },
      "malformed_header",
    ],
    [
      "digits beyond ASCII",
      { headers: { ...good, "x-sign": signed().replace(/./, "\u0661") } },
      "malformed_header",
    ],
    ["a long header", { headers: { ...good, "x-sign": signed().repeat(65) } }, "malformed_header"],
    ["an empty time", { headers: { ...good, "x-time": "" } }, "malformed_timestamp"],
  ];
  for (const [name, given, expected] of table) assertEquals(await refusalOf(custom, given), expected, name);
  const url = { signed: "{url}{body}", signature: SIGNATURE } as const;
  const headers = { "x-sign": mac(`${TARGET}${BODY}`) };
  assertEquals(await refusalOf(url, { headers, publicUrl: undefined }), "no_public_url");
  const path = { signed: "{path}{body}", signature: SIGNATURE } as const;
  assertEquals(await refusalOf(path, { headers, publicUrl: undefined }), undefined);
});

Deno.test("custom signatures: the identifier of a delivery is in a header or in the body", () => {
  const custom = { scheme: "custom", signed: "{body}", signature: SIGNATURE } as const;
  const input = { event: { id: "evt_1", n: 1 } };
  const table: readonly (readonly [Custom["id"], Readonly<Record<string, string>>, string | undefined])[] = [
    [{ field: "event.id" }, {}, "evt_1"],
    [{ field: "event.n" }, {}, undefined],
    [{ field: "event.id.length" }, {}, undefined],
    [{ field: "event.constructor.name" }, {}, undefined],
    [{ header: "x-a, x-b" }, { "x-b": "b" }, "b"],
    [{ header: "x-a, x-b" }, {}, undefined],
    [undefined, { "x-a": "a" }, undefined],
  ];
  for (const [id, headers, expected] of table) {
    assertEquals(deliveryIdOf({ ...custom, id }, new Map(Object.entries(headers)), input), expected);
  }
});
