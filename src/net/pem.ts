import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import tls from "node:tls";
import { errorText } from "../base/error_text.ts";

const BEGIN = "-----BEGIN CERTIFICATE-----";
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const KEY = /-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----/;
/** Those that a handshake takes; with others it would fail for every client. */
const CURVES = ["prime256v1", "secp384r1", "secp521r1"];

/** A pair that TLS takes, in words. */
const USABLE_PAIR = "a pair with an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key";

/** A certificate, and its text in PEM. */
export interface PemCertificate {
  readonly pem: string;
  readonly certificate: X509Certificate;
}

/** The certificates in a PEM text, a text each, without what is between them. */
export function certificatesIn(pem: string): readonly string[] {
  return pem.match(CERTIFICATE) ?? [];
}

/** The certificates of a PEM text. Throws an error with the problem of the text, never its content. */
export function parseCertificates(pem: string): [PemCertificate, ...PemCertificate[]] {
  const [first, ...others] = certificatesIn(pem);
  if (first === undefined) throw unusable("it holds no certificate in PEM", CERTIFICATES);
  // A file that was cut in the middle would otherwise be a shorter list.
  if (pem.split(BEGIN).length - 1 !== others.length + 1) {
    throw unusable("one of its certificates is incomplete", CERTIFICATES);
  }
  return [parseCertificate(first, 0), ...others.map((text, index) => parseCertificate(text, index + 1))];
}

/** The private key of a PEM text. Throws an error that shows nothing of the key, nor what a parser says of it. */
export function parsePrivateKey(pem: string): KeyObject {
  const expected = "a private key in PEM without a password";
  const kind = KEY.exec(pem)?.[1];
  if (kind === undefined) throw unusable("it holds no private key in PEM", expected);
  if (kind.includes("ENCRYPTED") || pem.includes("Proc-Type: 4,ENCRYPTED")) {
    throw unusable("the key is encrypted", expected);
  }
  try {
    return createPrivateKey(pem);
  } catch {
    throw unusable("its key cannot be read", expected);
  }
}

/** Throws if a key is not that of a certificate, which `place` names, or if TLS does not take it. */
export function checkPair(leaf: X509Certificate, key: KeyObject, place: string): void {
  if (!leaf.checkPrivateKey(key)) {
    throw unusable(
      `it is not the key of the first certificate in ${place}`,
      "a certificate with its own key",
    );
  }
  const kind = key.asymmetricKeyType;
  const isUsable = kind === "rsa" || kind === "ed25519" ||
    (kind === "ec" && CURVES.includes(key.asymmetricKeyDetails?.namedCurve ?? ""));
  if (!isUsable) throw unusable("TLS does not take a key of its kind", USABLE_PAIR);
}

const CERTIFICATES = "certificates in PEM";

function parseCertificate(pem: string, index: number): PemCertificate {
  try {
    return { pem, certificate: new X509Certificate(pem) };
  } catch {
    throw unusable(`its certificate number ${index + 1} cannot be read`, CERTIFICATES);
  }
}

/** Throws if TLS does not take a pair, for example because its key is too short. */
export function checkContext(options: tls.SecureContextOptions): void {
  try {
    tls.createSecureContext(options);
  } catch (error) {
    throw unusable(`TLS does not take it (${errorText(error)})`, USABLE_PAIR);
  }
}

function unusable(state: string, expected: string): Error {
  return new Error(`${state}; expected ${expected}`);
}
