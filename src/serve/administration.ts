import { NOT_OPENED } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";
import type { OpenWebhooks, OpenWebhooksOptions } from "./webhooks.ts";

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
  options: OpenWebhooksOptions,
): Promise<OpenWebhooks> {
  const { WEBHOOK_STORE: store, ADMIN_TOKEN: token } = parts.settings;
  if (store === undefined && token === undefined) return OFF;
  const { openWebhooks } = await import("./webhooks.ts");
  return openWebhooks(parts, options);
}
