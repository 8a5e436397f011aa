import { X509Certificate } from "node:crypto";
import type tls from "node:tls";
import { certificatesIn } from "../net/pem.ts";

interface ClientCertificatesOptions {
  /** PEM texts of the authorities. */
  readonly ca: string;
  /** A DNS name that every certificate must have; any when absent. */
  readonly clientName: string | undefined;
  readonly now: () => number;
}

/** More than the number of sessions that the platform keeps. */
const MAX_KNOWN = 1_000;

/**
 * Decides which clients are accepted. The platform does not verify the certificate of a resumed session again, and the
 * session may be older than the current authorities or belong to another port: its certificate must be known here.
 */
export class ClientCertificates {
  readonly #options: ClientCertificatesOptions;
  /** Fingerprints of verified certificates, with the authorities of that time. */
  readonly #known = new Map<string, readonly string[]>();
  #authorities: readonly string[];

  constructor(options: ClientCertificatesOptions) {
    this.#options = options;
    this.#authorities = certificatesIn(options.ca);
  }

  /** Replaces the authorities. */
  renew(ca: string): void {
    this.#authorities = certificatesIn(ca);
  }

  /** Why a client is refused; undefined when it is accepted. */
  problemOf(
    socket: Pick<
      tls.TLSSocket,
      "getPeerX509Certificate" | "authorized" | "authorizationError" | "isSessionReused"
    >,
  ): string | undefined {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return "the client has no certificate";
    if (socket.authorized !== true) return verificationProblem(socket.authorizationError);
    const problem = socket.isSessionReused() ? this.#sessionProblem(certificate) : undefined;
    if (problem !== undefined) return problem;
    this.#remember(certificate.fingerprint256);
    return this.#nameProblem(certificate);
  }

  #sessionProblem(certificate: X509Certificate): string | undefined {
    if (Date.parse(certificate.validTo) < this.#options.now()) return EXPIRED;
    const before = this.#known.get(certificate.fingerprint256);
    if (before === undefined) return "the client resumes an unknown session";
    if (before.every((authority) => this.#authorities.includes(authority))) return undefined;
    const isIssued = this.#authorities.some((text) => {
      const authority = new X509Certificate(text);
      return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
    });
    return isIssued ? undefined : "the client resumes a session of other authorities";
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

/** The platform reports an error, or only a code. */
function verificationProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : error;
  if (code === "CERT_HAS_EXPIRED") return EXPIRED;
  return `the client's certificate is not trusted (${String(code)})`;
}

/** DER tags. */
const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;
const BOOLEAN = 0x01;
const OCTET_STRING = 0x04;
const EXTENSIONS = 0xa3;
const DNS_NAME = 0x82;
/** 2.5.29.17, subject alternative names. */
const SUBJECT_ALT_NAME = "551d11";

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

/**
 * The DNS names among the subject alternative names of a DER certificate. `X509Certificate` only has all names as one
 * text, in which another kind of name can imitate a DNS name, and its `checkHost` reads that text.
 */
function dnsNamesOf(der: Uint8Array): string[] {
  const [certificate] = elementsOf(der);
  const [signed] = elementsOf(contentOf(certificate, SEQUENCE));
  const wrapped = elementsOf(contentOf(signed, SEQUENCE)).find(({ tag }) => tag === EXTENSIONS);
  if (wrapped === undefined) return [];
  const [extensions] = elementsOf(wrapped.content);
  for (const extension of elementsOf(contentOf(extensions, SEQUENCE))) {
    const [name, ...parts] = elementsOf(contentOf(extension, SEQUENCE));
    if (contentOf(name, OBJECT_IDENTIFIER).toHex() !== SUBJECT_ALT_NAME) continue;
    const value = parts[0]?.tag === BOOLEAN ? parts[1] : parts[0];
    const [names] = elementsOf(contentOf(value, OCTET_STRING));
    return elementsOf(contentOf(names, SEQUENCE)).filter(({ tag }) => tag === DNS_NAME)
      .map(({ content }) => String.fromCharCode(...content));
  }
  return [];
}

/** True when a name in a certificate covers a DNS name; `*` covers one whole first label. */
export function coversName(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.toLowerCase().split(".");
  const [label = "", ...domain] = name.toLowerCase().replace(/\.$/, "").split(".");
  if (rest.join(".") !== domain.join(".") || label === "") return false;
  return first === label || (first === "*" && domain.length > 0);
}

function contentOf(element: Element | undefined, tag: number): Uint8Array {
  if (element?.tag !== tag) throw malformed();
  return element.content;
}

function elementsOf(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const [tag, { start, end }] = [bytes[at] ?? 0, extentOf(bytes, at + 1)];
    if (end > bytes.length) throw malformed();
    elements.push({ tag, content: bytes.subarray(start, end) });
    at = end;
  }
  return elements;
}

/** Start and end of the content whose length is at `at`. */
function extentOf(bytes: Uint8Array, at: number): { readonly start: number; readonly end: number } {
  const first = bytes[at];
  if (first === undefined || first === 0x80 || first > 0x83) throw malformed();
  if (first < 0x80) return { start: at + 1, end: at + 1 + first };
  const start = at + 1 + (first & 0x7f);
  let length = 0;
  for (let index = at + 1; index < start; index++) length = length * 256 + (bytes[index] ?? 0);
  return { start, end: start + length };
}

function malformed(): Error {
  return new Error("Cannot read a certificate: it is not X.509 in DER");
}
