import { X509Certificate } from "node:crypto";
import type tls from "node:tls";
import { certificatesIn } from "../base/tls_files.ts";
import { coversName, dnsNamesOf } from "./certificate_names.ts";

/** Which certificates clients must have. */
export interface ClientCertificatesOptions {
  /** PEM texts of the authorities. */
  readonly ca: string;
  /** A DNS name that each certificate must be for; any when absent. */
  readonly clientName: string | undefined;
  readonly now: () => number;
}

/** Sessions are kept by the platform for fewer clients than this. */
const MAX_KNOWN = 1_000;

/**
 * Tells which clients may come in. A session that is resumed is not verified by the platform again, and
 * may be older than the authorities in force, or have begun at another port of this process: then its
 * certificate has to be one that was verified here.
 */
export class ClientCertificates {
  readonly #options: ClientCertificatesOptions;
  /** Fingerprints of certificates that were verified, each with the authorities of that time. */
  readonly #known = new Map<string, readonly string[]>();
  #authorities: readonly string[];

  constructor(options: ClientCertificatesOptions) {
    this.#options = options;
    this.#authorities = certificatesIn(options.ca);
  }

  /** Takes other authorities. */
  renew(ca: string): void {
    this.#authorities = certificatesIn(ca);
  }

  /** Why a client may not come in, or nothing. */
  problemOf(
    socket: Pick<
      tls.TLSSocket,
      "getPeerX509Certificate" | "authorized" | "authorizationError" | "isSessionReused"
    >,
  ): string | undefined {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return "the client shows no certificate";
    if (socket.authorized !== true) return verificationProblem(socket.authorizationError);
    const problem = socket.isSessionReused() ? this.#sessionProblem(certificate) : undefined;
    if (problem !== undefined) return problem;
    this.#remember(certificate.fingerprint256);
    return this.#nameProblem(certificate);
  }

  #sessionProblem(certificate: X509Certificate): string | undefined {
    if (Date.parse(certificate.validTo) < this.#options.now()) return EXPIRED;
    const before = this.#known.get(certificate.fingerprint256);
    if (before === undefined) return "the client resumes a session that did not begin here";
    if (before.every((authority) => this.#authorities.includes(authority))) return undefined;
    const isIssued = this.#authorities.some((text) => {
      const authority = new X509Certificate(text);
      return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
    });
    return isIssued ? undefined : "the client resumes a session that other authorities vouched for";
  }

  #remember(fingerprint: string): void {
    this.#known.delete(fingerprint);
    this.#known.set(fingerprint, this.#authorities);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest = ""] = this.#known.keys();
    this.#known.delete(oldest);
  }

  #nameProblem({ raw }: X509Certificate): string | undefined {
    const { clientName } = this.#options;
    if (clientName === undefined) return undefined;
    try {
      if (dnsNamesOf(raw).some((name) => coversName(name, clientName))) return undefined;
      return `the client's certificate is not for ${JSON.stringify(clientName)}`;
    } catch {
      return "the names in the client's certificate cannot be read";
    }
  }
}

const EXPIRED = "the client's certificate has expired";

/** The platform has an error, or a code alone. */
function verificationProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : error;
  if (code === "CERT_HAS_EXPIRED") return EXPIRED;
  return `the client's certificate does not stand the test against the authority (${String(code)})`;
}
