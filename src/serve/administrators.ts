import { Administrators } from "../http/administrators.ts";
import { configuredTokens, type NamedToken } from "../settings/administrator_tokens.ts";
import { NOT_OPENED } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";

/** Who may call the administration API. */
export interface OpenAdministrators {
  readonly administrators: Administrators;
  close(): Promise<void>;
}

/** A shorter token may be guessed. */
const GOOD_TOKEN_LENGTH = 32;

/** The administrators of the settings and of `ADMIN_TOKENS_FILE`. Throws when the file cannot be used. */
export async function openAdministrators(parts: ServiceParts): Promise<OpenAdministrators> {
  const { settings, logger } = parts;
  const path = settings.ADMIN_TOKENS_FILE;
  const administrators = new Administrators([], { mayCome: path !== undefined });
  const configured = configuredTokens(settings);
  const warned = new Set<string>();
  const apply = (tokens: readonly NamedToken[]) => {
    for (const { name, token } of tokens) {
      if (token.length >= GOOD_TOKEN_LENGTH || warned.has(name)) continue;
      warned.add(name);
      const text =
        `The administration token of "${name}" is short: use ${GOOD_TOKEN_LENGTH} characters or more`;
      logger.warning(text);
    }
    administrators.replace(tokens);
  };
  if (path === undefined) {
    apply(configured);
    return { administrators, ...NOT_OPENED };
  }
  const { TokensFile } = await import("./tokens_file.ts");
  const file = await TokensFile.open({ ...parts, path, configured, onTokens: apply });
  return { administrators, close: () => file.close() };
}
