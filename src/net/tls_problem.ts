import type { PeerCertificate, TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { withTimeout } from "../base/wait.ts";

/** The codes of the platform for a chain that ends at no trusted authority. */
export const UNTRUSTED = /SELF_SIGNED|^UNABLE_TO_|^CERT_UNTRUSTED$|^INVALID_CA$/;
/** Problems of certificates, by the code of the platform; the first match counts. */
const STATES: readonly (readonly [RegExp, string])[] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$|HOSTNAME_MISMATCH/, "the certificate is for another name"],
  [/^CERT_HAS_EXPIRED$/, "the certificate has expired"],
  [/^CERT_NOT_YET_VALID$/, "the certificate is not valid yet"],
  [/^CERT_REVOKED$/, "the certificate was revoked"],
  [UNTRUSTED, "the certificate is not issued by a trusted authority"],
];
/** The platform also reports an outdated certificate in this way. */
const UNCLEAR = /unable to (?:verify|get)[^:]*$/;
const LOOK_MS = 5_000;

/** The problem of a certificate, by the code of the platform; undefined where the code is about something else. */
export function certificateState(code: string | undefined): string | undefined {
  return STATES.find(([pattern]) => code !== undefined && pattern.test(code))?.[1];
}

/** The problem of the dates of a certificate at `now`, with the code of the platform; undefined within them. */
export function outdatedState(
  { valid_from: from, valid_to: to }: Partial<Pick<PeerCertificate, "valid_from" | "valid_to">>,
  now: number,
): { readonly state: string; readonly code: string } | undefined {
  if (Date.parse(to ?? "") < now) {
    return { state: `the certificate expired on ${certificateDate(to)}`, code: "CERT_HAS_EXPIRED" };
  }
  if (Date.parse(from ?? "") > now) {
    return {
      state: `the certificate is not valid before ${certificateDate(from)}`,
      code: "CERT_NOT_YET_VALID",
    };
  }
  return undefined;
}

/** A date of a certificate in ISO 8601; as it is when it cannot be read. */
export function certificateDate(text = ""): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** True if the text of an error of the platform is about the certificate of the server. */
function isCertificateProblem(text: string): boolean {
  return /certificate(?! ?required)/i.test(text);
}

/** Another look at a failed connection. */
interface TlsLook {
  /** Connects to the same place without verification. Nothing is sent over this connection. */
  readonly connect: () => TLSSocket | Promise<TLSSocket>;
  readonly clock: Clock;
}

/**
 * The error of a connection, with the cause where the certificate of the server was rejected: the platform reports an
 * outdated certificate as one of an unknown authority, and hides it. Never rejects.
 */
export async function explainedTlsError(error: unknown, { connect, clock }: TlsLook): Promise<Error> {
  const known = error instanceof Error ? error : new Error(String(error));
  if (!isCertificateProblem(known.message)) return known;
  let socket: TLSSocket | undefined;
  try {
    const looking = Promise.resolve(connect()).then((secured) => secureConnected(socket = secured));
    const secured = await withTimeout(looking, LOOK_MS, clock, () => new Error("no handshake"));
    const outdated = outdatedState(secured.getPeerCertificate() ?? {}, clock.now());
    if (outdated !== undefined) return new Error(`${outdated.state} (${outdated.code})`, { cause: error });
    if (!UNCLEAR.test(known.message)) return known;
    return new Error(`${known.message}: it is not issued by a trusted authority`, { cause: error });
  } catch {
    return known;
  } finally {
    socket?.destroy();
  }
}

/** Settles when the handshake is complete. */
export function secureConnected(socket: TLSSocket): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // It stays: a socket may fail more than once.
    socket.on("error", reject);
    socket.once("close", () => reject(new Error("the server closed the connection in the TLS handshake")));
    socket.once("secureConnect", () => resolve(socket));
  });
}
