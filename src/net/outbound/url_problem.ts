import type { Clock } from "../../base/clock.ts";
import { blockedReason, type Cidrs } from "./address_ranges.ts";
import { Dialler, type Lookup, targetOf } from "./dial.ts";
import { SendError } from "./send_error.ts";

/** Options of `urlProblem`. */
interface UrlProblemOptions {
  readonly clock: Clock;
  readonly lookup?: Lookup | undefined;
  readonly lookupTimeoutMs: number;
  /** True if a proxy connects; it then decides about addresses, and resolves names. */
  readonly isProxied?: boolean | undefined;
}

const MAX_LENGTH = 2_048;
/** Also an empty one, which a parser removes. */
const USER_INFO = /^[^:]*:\/*[^/?#]*@/;

/**
 * Why a user may not set a URL as a receiver, in words that begin with "expected"; nothing when it may. With https a name need
 * not resolve now: its addresses are checked when it is dialled.
 */
export async function urlProblem(
  text: string,
  allow: Cidrs,
  options: UrlProblemOptions,
): Promise<string | undefined> {
  const problem = urlShapeProblem(text);
  if (problem !== undefined) return problem;
  const url = new URL(text);
  if (url.protocol === "https:" && options.isProxied === true) return undefined;
  return await addressProblem(url, allow, options);
}

/** As `urlProblem`, of the text alone. */
export function urlShapeProblem(text: string): string | undefined {
  // A parser removes them: the URL that is shown would not be the one that is dialled.
  const isPlain = !/[\s\p{Cc}]/u.test(text);
  if (text.includes("\\")) return "expected a URL without a backslash";
  const url = isPlain && URL.canParse(text) && text.length <= MAX_LENGTH ? new URL(text) : undefined;
  if (url === undefined) {
    return `expected a URL such as "https://host/path" of at most ${MAX_LENGTH} characters without spaces`;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return "expected a URL with the scheme https";
  if (USER_INFO.test(text)) return "expected a URL without user name and password";
  return url.port === "0" ? "expected a URL with another port" : undefined;
}

async function addressProblem(
  url: URL,
  allow: Cidrs,
  { clock, lookupTimeoutMs, lookup }: UrlProblemOptions,
): Promise<string | undefined> {
  const target = targetOf(url);
  const dialler = new Dialler({ allow, connectTimeoutMs: lookupTimeoutMs, clock, lookup });
  let addresses: readonly string[];
  try {
    addresses = await dialler.resolve(target.host);
  } catch (error) {
    if (!(error instanceof SendError)) throw error;
    return target.isTls ? undefined : `${PLAIN}, and ${error.message}`;
  }
  if (!target.isTls && addresses.some((address) => !allow.contains(address))) return PLAIN;
  const reasons = addresses.map((address) => ({ address, reason: blockedReason(address, allow) }));
  const [first] = reasons;
  if (first?.reason === undefined || reasons.some(({ reason }) => reason === undefined)) return undefined;
  return `expected a public address or one in WEBHOOK_ALLOW_CIDRS: ${first.address} is ${first.reason}`;
}

const PLAIN = "expected https: http is only allowed to addresses in WEBHOOK_ALLOW_CIDRS";
