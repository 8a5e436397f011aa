import { NOT_OPENED } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";
import type { OpenWebhooks, OpenWebhooksOptions } from "./webhooks.ts";
import { Administrators } from "../http/routes/administrators.ts";
import { configuredTokens, type NamedToken } from "../settings/administrator_tokens.ts";

/** The administration, with who may call it. */
export interface OpenAdministration extends OpenWebhooks {
  readonly administrators: Administrators;
}

/** A shorter token may be guessed. */
const GOOD_TOKEN_LENGTH = 32;

const OFF: OpenWebhooks = {
  ...NOT_OPENED,
  routes: [],
  triggerRoutes: [],
  debugRoutes: [],
  listener: undefined,
  start: () => {},
};

/** Opens the webhook service and the administration, where a setting asks for one of them; both are loaded only then. */
export async function openAdministration(
  parts: ServiceParts,
  options: Omit<OpenWebhooksOptions, "administrators">,
): Promise<OpenAdministration> {
  const opened = await openAdministrators(parts);
  const { administrators } = opened;
  if (parts.settings.WEBHOOK_STORE === undefined && !administrators.isEnabled) {
    return { ...OFF, administrators };
  }
  const { openWebhooks } = await import("./webhooks.ts");
  try {
    const webhooks = openWebhooks(parts, { ...options, administrators });
    const close = async (graceMs: number) =>
      void await Promise.all([webhooks.close(graceMs), opened.close()]);
    return { ...webhooks, administrators, close };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** The administrators of the settings and of `ADMIN_TOKENS_FILE`. Throws when the file cannot be used. */
async function openAdministrators(
  parts: ServiceParts,
): Promise<{ readonly administrators: Administrators; close(): Promise<void> }> {
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
