import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import tls from "node:tls";
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { allEnded } from "../base/wait.ts";

/** The certificate and key of a server, and the authorities of its clients; PEM texts. */
export interface TlsPair {
  readonly key: string;
  readonly cert: string;
  /** Authorities of the clients; absent where clients need no certificate. */
  readonly ca?: string | undefined;
}

/** The files of a pair, or the settings that name them. */
export interface TlsPairFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string | undefined;
}

/** A pair that was read, with what its operator should know although it can be used. */
export interface TlsPairReading extends TlsPair {
  readonly warnings: readonly string[];
}

/** Certificates and keys are small; a larger file is something else. */
const MAX_BYTES = 1024 * 1024;
const BEGIN = "-----BEGIN CERTIFICATE-----";
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const KEY = /-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----/;
/** Those that a handshake takes; with others it would fail for every client. */
const CURVES = ["prime256v1", "secp384r1", "secp521r1"];

/**
 * Reads the files and checks that they can be used together, since TLS itself takes a pair that does not
 * fit and then refuses every client. Throws an error that names the setting and the path, never the content.
 */
export async function readTlsPair(
  files: TlsPairFiles,
  names: TlsPairFiles,
  { clock = systemClock }: { readonly clock?: Pick<Clock, "now"> } = {},
): Promise<TlsPairReading> {
  const [certText, key, ca] = await allEnded([
    readNamed(names.cert, files.cert),
    readNamed(names.key, files.key),
    files.ca === undefined ? undefined : readNamed(names.ca ?? "", files.ca),
  ]);
  const now = clock.now();
  const chain = certificatesOf(certText, names.cert, files.cert);
  const cert = chain.map(({ pem }) => pem).join("\n") + "\n";
  const [{ certificate: leaf }] = chain;
  checkKey(leaf, privateKeyOf(key, names.key, files.key), { files, names });
  const authorities = files.ca === undefined || ca === undefined
    ? []
    : certificatesOf(ca, names.ca ?? "", files.ca);
  try {
    tls.createSecureContext({ key, cert, ...(ca === undefined ? {} : { ca }) });
  } catch (error) {
    throw unusable(names.cert, files.cert, `TLS does not take it (${errorText(error)})`, OTHER_PAIR);
  }
  const warnings = [
    ...chain.flatMap((one) => validity(one.certificate, now, names.cert, files.cert)),
    ...authorities.flatMap((one) => validity(one.certificate, now, names.ca ?? "", files.ca ?? "")),
  ];
  const given = ca === undefined ? {} : { ca: authorities.map(({ pem }) => pem).join("\n") + "\n" };
  return { key, cert, ...given, warnings };
}

/** The TLS options of a server with a pair. Complete: omitted ones would fall back to the defaults. */
export function serverContext({ key, cert, ca }: TlsPair): tls.SecureContextOptions {
  return { key, cert, ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2", maxVersion: "TLSv1.3" };
}

/** Reads a PEM file of authorities, a text each. Throws an error that names the setting and the path. */
export async function readAuthorities(name: string, path: string): Promise<string[]> {
  return certificatesOf(await readNamed(name, path), name, path).map(({ pem }) => pem);
}

/** When the certificate of a PEM file that expires first becomes valid and expires, in milliseconds since the epoch. */
export async function readValidity(name: string, path: string): Promise<{ from: number; to: number }> {
  const certificates = certificatesOf(await readNamed(name, path), name, path);
  const [first = { from: 0, to: 0 }] = certificates
    .map(({ certificate: { validFrom, validTo } }) => ({
      from: Date.parse(validFrom),
      to: Date.parse(validTo),
    }))
    .sort((one, other) => one.to - other.to);
  return first;
}

/** The certificates in a PEM text, a text each, without what is between them. */
export function certificatesIn(pem: string): readonly string[] {
  return pem.match(CERTIFICATE) ?? [];
}

interface PemCertificate {
  readonly pem: string;
  readonly certificate: X509Certificate;
}

const OTHER_PAIR = "a pair with an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key";

async function readNamed(name: string, path: string): Promise<string> {
  try {
    const found = await stat(path);
    // Reading a named pipe may never end.
    if (!found.isFile()) throw new Error("it is no file");
    if (found.size > MAX_BYTES) throw new Error("it has more than 1 MiB");
    return await readFile(path, "utf8");
  } catch (error) {
    throw unusable(name, path, errorText(error), "a readable file in PEM");
  }
}

function certificatesOf(text: string, name: string, path: string): [PemCertificate, ...PemCertificate[]] {
  try {
    return parseCertificates(text);
  } catch (error) {
    throw unusable(name, path, errorText(error), "certificates in PEM");
  }
}

function parseCertificates(pem: string): [PemCertificate, ...PemCertificate[]] {
  const [first, ...others] = certificatesIn(pem);
  if (first === undefined) throw new Error("it holds no certificate in PEM");
  // A file that was cut in the middle would otherwise be a shorter list.
  if (pem.split(BEGIN).length - 1 !== others.length + 1) {
    throw new Error("one of its certificates is incomplete");
  }
  return [parseCertificate(first, 0), ...others.map((text, index) => parseCertificate(text, index + 1))];
}

function parseCertificate(pem: string, index: number): PemCertificate {
  try {
    return { pem, certificate: new X509Certificate(pem) };
  } catch {
    throw new Error(`its certificate number ${index + 1} cannot be read`);
  }
}

/** Of a key nothing is shown, nor what a parser says of it. */
function privateKeyOf(text: string, name: string, path: string): KeyObject {
  const expected = "a private key in PEM without a password";
  const kind = KEY.exec(text)?.[1];
  if (kind === undefined) throw unusable(name, path, "it holds no private key in PEM", expected);
  if (kind.includes("ENCRYPTED") || text.includes("Proc-Type: 4,ENCRYPTED")) {
    throw unusable(name, path, "the key is encrypted", expected);
  }
  try {
    return createPrivateKey(text);
  } catch {
    throw unusable(name, path, "its key cannot be read", expected);
  }
}

function checkKey(
  leaf: X509Certificate,
  key: KeyObject,
  { files, names }: { readonly files: TlsPairFiles; readonly names: TlsPairFiles },
): void {
  if (!leaf.checkPrivateKey(key)) {
    const state = `it is not the key of the first certificate in ${names.cert} ${JSON.stringify(files.cert)}`;
    throw unusable(names.key, files.key, state, "a certificate with its own key");
  }
  const kind = key.asymmetricKeyType;
  const isUsable = kind === "rsa" || kind === "ed25519" ||
    (kind === "ec" && CURVES.includes(key.asymmetricKeyDetails?.namedCurve ?? ""));
  if (!isUsable) throw unusable(names.key, files.key, "TLS does not take a key of its kind", OTHER_PAIR);
}

function validity(certificate: X509Certificate, now: number, name: string, path: string): string[] {
  const text = `${name} ${JSON.stringify(path)}`;
  const { validFrom, validTo } = certificate;
  if (Date.parse(validTo) < now) return [`a certificate of ${text} is no longer valid, since ${validTo}`];
  if (Date.parse(validFrom) > now) return [`a certificate of ${text} is not valid before ${validFrom}`];
  return [];
}

function unusable(name: string, path: string, state: string, expected: string): Error {
  return new Error(`Cannot use ${name} ${JSON.stringify(path)}: ${state}; expected ${expected}`);
}
