import { certificateState, outdatedState, UNTRUSTED } from "../tls_problem.ts";

/** The step at which a request failed. */
type SendErrorKind =
  | "blocked_address"
  | "connect"
  | "dns"
  | "interrupted"
  | "protocol"
  | "reset"
  | "status"
  | "timeout"
  | "tls"
  | "unsendable";

/** Why a request has no response. The text holds no URL, no header and nothing of a body. */
export class SendError extends Error {
  override readonly name = "SendError";
  readonly kind: SendErrorKind;
  /** Of the platform. */
  readonly code?: string;
  /** Of a response that is not final. */
  readonly status?: number;

  constructor(
    kind: SendErrorKind,
    state: string,
    { code, status }: { readonly code?: string | undefined; readonly status?: number | undefined } = {},
  ) {
    super(code === undefined ? state : `${state} (${code})`);
    this.kind = kind;
    if (code !== undefined) this.code = code;
    if (status !== undefined) this.status = status;
  }
}

const unsent = new WeakSet<object>();

/** Notes that nothing was written of the request that failed with this error. */
export function markUnsent(error: unknown): void {
  if (error instanceof Error) unsent.add(error);
}

/** Returns true if nothing was written of the request, for a reason that may pass. */
export function isUnsent(error: unknown): boolean {
  return error instanceof Error && (unsent.has(error) || isUnsent(error.cause));
}

/** Returns true if the chain of the certificate ends at no trusted authority. */
export function isUntrusted(error: unknown): boolean {
  return error instanceof SendError && error.kind === "tls" && UNTRUSTED.test(error.code ?? "");
}

/** Returns true if the platform rejected the dates of the certificate. */
export function isOutdated(error: unknown): boolean {
  return error instanceof SendError && /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/.test(error.code ?? "");
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
  const state = certificateState(code) ?? refusedCertificate(error) ?? "the TLS handshake failed";
  return new SendError("tls", state, { code });
}

/** Alerts of servers about the certificate of the client. */
const CERTIFICATE_ALERT = /received fatal alert: (?:\w*Certificate\w*|UnknownCA|AccessDenied)/i;

/** The problem of the client certificate that a server reports; with TLS 1.3 only after the handshake. */
function refusedCertificate(error: unknown): string | undefined {
  const alert = error instanceof Error ? CERTIFICATE_ALERT.exec(error.message)?.[0] : undefined;
  if (alert === undefined) return undefined;
  const isRequired = /CertificateRequired|NoCertificate/.test(alert);
  return `the receiver ${isRequired ? "requires a" : "rejected the"} client certificate`;
}

/** The error for a certificate outside its dates at `now`; nothing within them. */
export function outdatedError(...given: Parameters<typeof outdatedState>): SendError | undefined {
  const outdated = outdatedState(...given);
  return outdated === undefined ? undefined : new SendError("tls", outdated.state, { code: outdated.code });
}

/** The error for a connection that ended before the head of a response. */
export function responseError(error: unknown): SendError {
  if (error instanceof SendError) return error;
  if (refusedCertificate(error) !== undefined) return tlsError(error);
  return new SendError("reset", "the connection closed before a response arrived", { code: codeOf(error) });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" && /^\w+$/.test(error.code) ? error.code : undefined;
}
