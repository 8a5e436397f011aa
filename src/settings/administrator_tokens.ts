import { parseBearerToken } from "./parsers.ts";
import type { Parsed } from "./setting.ts";

/** A named token of the administration API. */
export interface NamedToken {
  readonly name: string;
  readonly role: "admin" | "read";
  readonly token: string;
}

/** Most tokens: each call is compared with all. */
export const MAX_TOKENS = 100;
const PARTS = /^([A-Za-z0-9][\w.@-]{0,63}):(admin|read):(.*)$/;
/** The actor of what Weir does itself. */
const SYSTEM = "system";
const EXPECTED =
  "name:role:token: a name of at most 64 letters, digits and ._@-, other than system; the role " +
  "admin or read; and a random token without commas and spaces";

/** Reads `name:role:token`. */
export function parseNamedToken(text: string): Parsed<NamedToken> {
  const [, name = "", role, token = ""] = PARTS.exec(text) ?? [];
  const parsed = parseBearerToken(token);
  if ("expected" in parsed || token.includes(",") || name === SYSTEM) return { expected: EXPECTED };
  return { value: { name, role: role === "read" ? "read" : "admin", token } };
}

/** The tokens of `ADMIN_TOKEN` and `ADMIN_TOKENS`. */
export function configuredTokens(
  { ADMIN_TOKEN, ADMIN_TOKENS = [] }: {
    readonly ADMIN_TOKEN: string | undefined;
    readonly ADMIN_TOKENS: readonly NamedToken[] | undefined;
  },
): readonly NamedToken[] {
  const first: readonly NamedToken[] = ADMIN_TOKEN === undefined
    ? []
    : [{ name: "admin", role: "admin", token: ADMIN_TOKEN }];
  return [...first, ...ADMIN_TOKENS];
}

/** Why tokens cannot be used together, never showing one; nothing when they can. */
export function namedTokensProblem(tokens: readonly NamedToken[]): string | undefined {
  if (tokens.length > MAX_TOKENS) return `${tokens.length} tokens; expected at most ${MAX_TOKENS}`;
  const names = new Set<string>();
  const owners = new Map<string, string>();
  for (const { name, token } of tokens) {
    if (names.has(name)) return `two tokens have the name "${name}"; expected each name once`;
    const owner = owners.get(token);
    if (owner !== undefined) return `"${owner}" and "${name}" have the same token; expected each token once`;
    names.add(name);
    owners.set(token, name);
  }
  return undefined;
}
