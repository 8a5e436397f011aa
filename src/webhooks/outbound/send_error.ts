import type { PeerCertificate } from "node:tls";
import type { AttemptErrorKind } from "../model/records.ts";

/** Why a request has no response. The text holds no URL, no header and nothing of a body. */
export class SendError extends Error {
  override readonly name = "SendError";
  readonly kind: AttemptErrorKind;
  /** Of the platform. */
  readonly code?: string;
  /** Of a response that is not final. */
  readonly status?: number;

  constructor(
    kind: AttemptErrorKind,
    state: string,
    { code, status }: { readonly code?: string | undefined; readonly status?: number | undefined } = {},
  ) {
    super(code === undefined ? state : `${state} (${code})`);
    this.kind = kind;
    if (code !== undefined) this.code = code;
    if (status !== undefined) this.status = status;
  }
}

const UNTRUSTED = /SELF_SIGNED|^UNABLE_TO_|^CERT_UNTRUSTED$|^INVALID_CA$/;
/** An untrusted chain has these codes too: see `certificateError`. */
const OUTDATED = /^CERT_HAS_EXPIRED$|^CERT_NOT_YET_VALID$/;
/** What is wrong with a certificate, by the code of the platform; the first match counts. */
const TLS_STATES: readonly (readonly [RegExp, string])[] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$|HOSTNAME_MISMATCH/, "the certificate is for another name"],
  [/^CERT_HAS_EXPIRED$/, "the certificate has expired"],
  [/^CERT_NOT_YET_VALID$/, "the certificate is not valid yet"],
  [/^CERT_REVOKED$/, "the certificate was revoked"],
  [UNTRUSTED, "the certificate is not issued by a trusted authority"],
];

/** Whether the chain of the certificate may end at no trusted authority. */
export function isUntrusted(error: unknown): boolean {
  if (!(error instanceof SendError) || error.kind !== "tls") return false;
  return UNTRUSTED.test(error.code ?? "") || OUTDATED.test(error.code ?? "");
}

/** The error for a name that was not resolved. */
export function lookupError(error: unknown): SendError {
  return new SendError("dns", "the name of the host cannot be resolved", { code: codeOf(error) });
}

/** The error for a connection that was not made. */
export function connectError(error: unknown, address: string): SendError {
  const code = codeOf(error);
  if (code === "ECONNREFUSED") return new SendError("connect", `connection refused (${address})`);
  return new SendError("connect", `no connection to ${address}`, { code });
}

/** The error for a handshake that failed. */
export function tlsError(error: unknown): SendError {
  const code = codeOf(error);
  const state = TLS_STATES.find(([pattern]) => code !== undefined && pattern.test(code))?.[1];
  return new SendError("tls", state ?? "the TLS handshake failed", { code });
}

/**
 * The error for a certificate that the platform rejected. The platform reports an expiry as an untrusted chain. Its clock
 * decides whether a certificate is valid; `now` only explains the failure, and may differ from it.
 */
export function certificateError(
  error: unknown,
  { valid_from: from, valid_to: to }: Validity,
  now: number,
): SendError {
  if (Date.parse(to ?? "") < now) {
    const state = `the certificate expired on ${certificateDate(to)}`;
    return new SendError("tls", state, { code: "CERT_HAS_EXPIRED" });
  }
  if (Date.parse(from ?? "") > now) {
    const state = `the certificate is not valid before ${certificateDate(from)}`;
    return new SendError("tls", state, { code: "CERT_NOT_YET_VALID" });
  }
  return tlsError(error);
}

/** The dates of a certificate, as the platform writes them. */
type Validity = Partial<Pick<PeerCertificate, "valid_from" | "valid_to">>;

/** A date of a certificate in ISO 8601; as it is when it cannot be read. */
export function certificateDate(text = ""): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** The error for a connection that ended before the head of a response. */
export function responseError(error: unknown): SendError {
  if (error instanceof SendError) return error;
  return new SendError("reset", "the connection closed before a response arrived", { code: codeOf(error) });
}

function codeOf(error: unknown): string | undefined {
  // A rejected certificate is its code alone.
  const code = error instanceof Error && "code" in error ? error.code : error;
  return typeof code === "string" && /^\w+$/.test(code) ? code : undefined;
}
