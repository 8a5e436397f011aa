import type { NetworkErrorKind } from "./rest_error.ts";
import { codeOf, withoutSecrets } from "./shown_text.ts";

/** A failure without a response. */
interface NetworkFailure {
  readonly kind: PlatformKind | undefined;
  /** The failure, followed by the message of the platform in parentheses. */
  readonly state: string;
}

type PlatformKind = Exclude<NetworkErrorKind, "redirect">;

const STATES: Readonly<Record<PlatformKind, string>> = {
  dns: "cannot resolve the host name",
  connect: "cannot connect to the host",
  tls: "the TLS handshake failed",
};

/** Error codes of Node. */
const CODES: Readonly<Record<PlatformKind, RegExp>> = {
  dns: /^(?:ENOTFOUND|EAI_\w+)$/,
  tls:
    /^(?:ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|CERT_\w+|\w+_CERT(?:_\w+)?|UNABLE_TO_\w+|HOSTNAME_MISMATCH|INVALID_CA)$/,
  connect: /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
};

/** Messages of Deno, whose errors have no codes; the first match counts. */
const WORDS: readonly (readonly [PlatformKind, RegExp])[] = [
  ["dns", /dns error|failed to lookup address/i],
  [
    "tls",
    /certificate|\(Connect\): (?:received (?:corrupt|fatal|unexpected|alert)|peer|tls|invalid)|handshake/i,
  ],
  ["connect", /tcp connect error|\(Connect\)/i],
];

/** Classifies an error that `fetch` threw. */
export function networkFailure(error: unknown): NetworkFailure {
  const chain = causesOf(error);
  const kind = kindByCode(chain) ?? kindByWords(chain);
  const state = kind === undefined ? "the connection failed" : STATES[kind];
  const message = innermostMessage(chain);
  return { kind, state: message === "" ? state : `${state} (${message})` };
}

function causesOf(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < 8; one = one.cause) {
    chain.push(one);
    // Several addresses were tried; the first error is as good as any.
    if (one instanceof AggregateError && one.errors[0] instanceof Error) chain.push(one.errors[0]);
  }
  return chain;
}

function kindByCode(chain: readonly Error[]): PlatformKind | undefined {
  for (const error of chain) {
    const code = codeOf(error);
    if (code === undefined) continue;
    for (const kind of ["dns", "tls", "connect"] as const) if (CODES[kind].test(code)) return kind;
  }
  return undefined;
}

function kindByWords(chain: readonly Error[]): PlatformKind | undefined {
  const text = chain.map(({ message }) => message).join("\n");
  return WORDS.find(([, words]) => words.test(text))?.[0];
}

/** The innermost message; without the request that Deno prepends. */
function innermostMessage(chain: readonly Error[]): string {
  const text = chain.findLast(({ message }) => message !== "")?.message ?? "";
  const message = text.replace(/^error sending request .*?: (?=client error)/s, "").replace(
    /^client error \(\w+\): /,
    "",
  );
  return withoutSecrets(message).replaceAll(/\s+/g, " ").trim().slice(0, 200);
}
