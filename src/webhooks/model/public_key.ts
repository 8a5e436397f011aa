import { unshared } from "./signature.ts";

/** The bytes of an Ed25519 public key of 32 bytes in hex or base64; none for another text. */
export function publicKeyBytes(key: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(key)) return Uint8Array.fromHex(key);
  return /^[A-Za-z0-9+/]{43}=$/.test(key) ? Uint8Array.fromBase64(key) : new Uint8Array();
}

/** Returns whether one of the Ed25519 signatures of bytes is that of the owner of a public key. */
export async function isSignedByKey(
  key: string,
  signatures: readonly Uint8Array[],
  bytes: Uint8Array,
): Promise<boolean> {
  const raw = unshared(publicKeyBytes(key));
  const imported = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  const results = await Promise.all(signatures.map((signature) => {
    return crypto.subtle.verify("Ed25519", imported, unshared(signature), unshared(bytes));
  }));
  return results.includes(true);
}
