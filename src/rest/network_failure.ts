import type { NetworkErrorKind } from "./rest_error.ts";
import { codeOf, withoutSecrets } from "./shown_text.ts";

/** How a failure without an answer is told. */
export interface NetworkFailure {
  readonly kind: PlatformKind | undefined;
  /** What happened, in a few words, with those of the platform in brackets. */
  readonly state: string;
}

/** Redirects are followed by the library, not by the platform. */
type PlatformKind = Exclude<NetworkErrorKind, "redirect">;

const STATES: Readonly<Record<PlatformKind, string>> = {
  dns: "the name of the host cannot be resolved",
  connect: "no connection to the host",
  tls: "the TLS handshake with the host failed",
};

/** Codes of Node's errors. */
const CODES: Readonly<Record<PlatformKind, RegExp>> = {
  dns: /^(?:ENOTFOUND|EAI_\w+)$/,
  tls:
    /^(?:ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|CERT_\w+|\w+_CERT(?:_\w+)?|UNABLE_TO_\w+|HOSTNAME_MISMATCH|INVALID_CA)$/,
  connect: /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
};

/** Words of Deno's errors, which have no codes; looked for in this order. */
const WORDS: readonly (readonly [PlatformKind, RegExp])[] = [
  ["dns", /dns error|failed to lookup address/i],
  [
    "tls",
    /certificate|\(Connect\): (?:received (?:corrupt|fatal|unexpected|alert)|peer|tls|invalid)|handshake/i,
  ],
  ["connect", /tcp connect error|\(Connect\)/i],
];

/** The failure that `fetch` threw, and what the platform says of it. */
export function networkFailure(error: unknown): NetworkFailure {
  const chain = causesOf(error);
  const kind = kindByCode(chain) ?? kindByWords(chain);
  const state = kind === undefined ? "the connection failed" : STATES[kind];
  const told = lastWords(chain);
  return { kind, state: told === "" ? state : `${state} (${told})` };
}

function causesOf(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < 8; one = one.cause) {
    chain.push(one);
    // Several addresses were tried: the first failure stands for all.
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

/** The innermost message; of those of Deno what follows the request it names. */
function lastWords(chain: readonly Error[]): string {
  const text = chain.findLast(({ message }) => message !== "")?.message ?? "";
  const told = text.replace(/^error sending request .*?: (?=client error)/s, "").replace(
    /^client error \(\w+\): /,
    "",
  );
  return withoutSecrets(told).replaceAll(/\s+/g, " ").trim().slice(0, 200);
}
