import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";

/** Certificates and keys are small; whatever is larger than this is something else. */
const MAX_BYTES = 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Reads a file in PEM. Throws when it cannot be one; the error does not name the path. */
export async function readPem(path: string): Promise<string> {
  checkFile(await stat(path));
  return await readFile(path, "utf8");
}

/** As `readPem`, at once: for a start. */
export function readPemSync(path: string): string {
  checkFile(statSync(path));
  return readFileSync(path, "utf8");
}

function checkFile(found: { readonly size: number; isFile(): boolean }): void {
  // A named pipe would hold up the reading for good.
  if (!found.isFile()) throw new Error("it is no file");
  if (found.size > MAX_BYTES) throw new Error("it has more than 1 MiB");
}

/** The certificates in a text, each as a text of its own, in their order; what is between them is left out. */
export function certificatesIn(pem: string): readonly string[] {
  return pem.match(CERTIFICATE) ?? [];
}

/** As `certificatesIn`, each parsed; throws an error that says which cannot be, or that there are none. */
export function parseCertificates(pem: string): [PemCertificate, ...PemCertificate[]] {
  const [first, ...others] = certificatesIn(pem);
  if (first === undefined) throw new Error("it holds no certificate in PEM");
  return [parse(first, 0), ...others.map((text, index) => parse(text, index + 1))];
}

/** A certificate and the text it was read from. */
export interface PemCertificate {
  readonly pem: string;
  readonly certificate: X509Certificate;
}

function parse(pem: string, index: number): PemCertificate {
  try {
    return { pem, certificate: new X509Certificate(pem) };
  } catch {
    throw new Error(`its certificate number ${index + 1} cannot be read`);
  }
}
