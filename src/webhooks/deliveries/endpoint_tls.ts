import { errorText } from "../../base/error_text.ts";
import {
  checkContext,
  checkPair,
  parseCertificates,
  parsePrivateKey,
  type PemCertificate,
} from "../../net/pem.ts";
import type { OpenedTls } from "../model/credentials.ts";
import type { EndpointTls } from "../model/records.ts";

/** Texts in PEM as they were sent. */
interface SentTls {
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  readonly ca?: string | undefined;
}

/** A text that cannot be used; the field is empty where several are concerned. */
interface TlsProblem {
  readonly field: keyof SentTls | "";
  readonly problem: string;
}

/** Checks the client certificate and the authorities of an endpoint; a certificate may become valid later. */
export function readTls(
  { certificate, key, ca }: SentTls,
  now: number,
): { readonly opened: OpenedTls; readonly shown: EndpointTls } | TlsProblem {
  if (certificate === undefined && ca === undefined) {
    return { field: "", problem: "expected certificate and key, or ca" };
  }
  if (certificate === undefined !== (key === undefined)) {
    const field = key === undefined ? "key" : "certificate";
    return { field, problem: "expected the certificate together with its key" };
  }
  let field: keyof SentTls = "certificate";
  try {
    const chain = certificate === undefined ? [] : unexpired(parseCertificates(certificate), now);
    field = "ca";
    const authorities = ca === undefined ? [] : unexpired(parseCertificates(ca), now);
    field = "key";
    const [leaf] = chain;
    if (leaf !== undefined && key !== undefined) {
      checkPair(leaf.certificate, parsePrivateKey(key), "tls.certificate");
      checkContext({ cert: pemOf(chain), key });
    }
    return {
      opened: {
        ...(leaf === undefined ? {} : { certificate: pemOf(chain), key }),
        ...(ca === undefined ? {} : { authorities: authorities.map(({ pem }) => pem) }),
      },
      shown: {
        ...(leaf === undefined ? {} : { subject: subjectOf(leaf), expiresAt: expiryOf(chain) }),
        ...(ca === undefined ? {} : { authorities: authorities.map(subjectOf) }),
      },
    };
  } catch (error) {
    return { field, problem: errorText(error) };
  }
}

function unexpired(certificates: readonly PemCertificate[], now: number): readonly PemCertificate[] {
  const expired = certificates.find(({ certificate }) => Date.parse(certificate.validTo) < now);
  if (expired === undefined) return certificates;
  const at = new Date(expired.certificate.validTo).toISOString();
  throw new Error(`expected a certificate that has not expired; ${subjectOf(expired)} expired at ${at}`);
}

function pemOf(certificates: readonly PemCertificate[]): string {
  return `${certificates.map(({ pem }) => pem).join("\n")}\n`;
}

function expiryOf(certificates: readonly PemCertificate[]): number {
  return Math.min(...certificates.map(({ certificate }) => Date.parse(certificate.validTo)));
}

/** The subject in one line. */
function subjectOf({ certificate }: PemCertificate): string {
  return certificate.subject.replace(/[\n\r]+/g, ", ");
}
