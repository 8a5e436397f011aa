import type { Clock } from "../../base/clock.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import { Cidrs } from "../model/address_ranges.ts";
import { createGuardedFetch, type GuardedFetch } from "../outbound/fetch.ts";
import type { SecretBox } from "../secrets/secret_box.ts";
import { createSender, type DeliverySender } from "../deliveries/sender.ts";
import { createEndpointCheck, type EndpointCheck } from "../deliveries/endpoint_check.ts";
import { urlProblem } from "../deliveries/endpoint_url.ts";
import type { WebhookOptions } from "./message.ts";

/** What the senders of a webhook service are made with. */
export interface WebhookOutsideOptions {
  readonly options: WebhookOptions;
  /** The clock of this machine. */
  readonly clock: Clock;
  /** That of the store: a date that a receiver asks to wait for becomes a time that is stored. */
  readonly storeClock: Clock;
  readonly secretBox: SecretBox;
}

/** What speaks to the world for a webhook service. */
export interface WebhookOutside {
  readonly sender: DeliverySender;
  /** For the steps of workflows. */
  readonly fetch: (...call: Parameters<GuardedFetch>) => Promise<Response>;
  readonly check: EndpointCheck;
  /** Why an endpoint may not have this URL; nothing when it may. */
  readonly urlProblem: (url: string) => ReturnType<typeof urlProblem>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Makes the senders. Throws when the file of authorities or the proxy cannot be used. */
export function createOutside(
  { options, clock, storeClock, secretBox }: WebhookOutsideOptions,
): WebhookOutside {
  const { connectTimeoutMs, caFile, proxy, timeoutMs, version } = options;
  const allow = new Cidrs(options.allowCidrs);
  const newId = () => crypto.randomUUID();
  const userAgent = `Weir/${version}`;
  const sender = createSender({ allow, connectTimeoutMs, caFile, proxy, userAgent, clock: storeClock });
  const fetch = createGuardedFetch({
    allow: new Cidrs(options.workflowAllowCidrs),
    connectTimeoutMs,
    clock,
    authorities: caFile === undefined ? undefined : readAuthoritiesSync("WEBHOOK_CA_FILE", caFile),
    proxy: proxy === undefined ? undefined : new URL(proxy),
  });
  const dial = { allow, connectTimeoutMs, caFile, proxy, clock };
  const lookups = { clock, lookupTimeoutMs: connectTimeoutMs, isProxied: proxy !== undefined };
  return {
    sender,
    fetch,
    check: createEndpointCheck({ ...dial, sender, secretBox, newId, timeoutMs, version }),
    urlProblem: (url) => urlProblem(url, allow, lookups),
    close: async () => void await Promise.all([sender.close(), fetch.close()]),
  };
}
