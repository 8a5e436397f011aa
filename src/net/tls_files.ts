import type { X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type tls from "node:tls";
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { allEnded } from "../base/wait.ts";
import { checkContext, checkPair, parseCertificates, parsePrivateKey, type PemCertificate } from "./pem.ts";

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
  const place = `${names.cert} ${JSON.stringify(files.cert)}`;
  usable(names.key, files.key, () => checkPair(leaf, parsePrivateKey(key), place));
  const authorities = files.ca === undefined || ca === undefined
    ? []
    : certificatesOf(ca, names.ca ?? "", files.ca);
  usable(names.cert, files.cert, () => checkContext({ key, cert, ...(ca === undefined ? {} : { ca }) }));
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
  return usable(name, path, () => parseCertificates(text));
}

function validity(certificate: X509Certificate, now: number, name: string, path: string): string[] {
  const text = `${name} ${JSON.stringify(path)}`;
  const { validFrom, validTo } = certificate;
  if (Date.parse(validTo) < now) return [`a certificate of ${text} is no longer valid, since ${validTo}`];
  if (Date.parse(validFrom) > now) return [`a certificate of ${text} is not valid before ${validFrom}`];
  return [];
}

/** Parses the text of a file; throws its problem with the setting and the path. */
function usable<T>(name: string, path: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new Error(`Cannot use ${name} ${JSON.stringify(path)}: ${errorText(error)}`);
  }
}

function unusable(name: string, path: string, state: string, expected: string): Error {
  return new Error(`Cannot use ${name} ${JSON.stringify(path)}: ${state}; expected ${expected}`);
}
