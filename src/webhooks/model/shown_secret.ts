import { constantTimeEqual, hmac } from "./signature.ts";

/** A secret that a call shows as it is, or with the user in HTTP Basic. */
interface ShownSecret {
  /** Bytes of a header, in Latin-1. */
  readonly shown: string;
  readonly secret: string;
  readonly isBasic: boolean;
  readonly body: Uint8Array;
}

const encoder = new TextEncoder();

/** Returns whether a call shows a secret. Its body is hashed as that of a signed call, so that the time tells nothing. */
export async function isSecretShown({ shown, secret, isBasic, body }: ShownSecret): Promise<boolean> {
  const expected = encoder.encode(isBasic ? encoder.encode(secret).toBase64() : secret);
  const given = Uint8Array.from(shown, (character) => character.charCodeAt(0));
  const digests = await Promise.all([given, expected].map((bytes) => {
    return hmac({ secret, form: "text" }, joined(bytes, body));
  }));
  const [one = "", other] = digests.map((digest) => digest.toHex());
  return other !== undefined && constantTimeEqual(one, other);
}

function joined(head: Uint8Array, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}
