import { openAdministrators } from "./administrators.ts";
import { NOT_OPENED } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";
import type { OpenWebhooks, OpenWebhooksOptions } from "./webhooks.ts";
import type { Administrators } from "../http/administrators.ts";

/** The administration, with who may call it. */
export interface OpenAdministration extends OpenWebhooks {
  readonly administrators: Administrators;
}

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
