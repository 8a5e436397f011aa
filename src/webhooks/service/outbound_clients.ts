import type { Clock } from "../../base/clock.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import { Cidrs } from "../model/address_ranges.ts";
import { createGuardedFetch } from "../outbound/fetch.ts";
import type { SecretBox } from "../secrets/secret_box.ts";
import { createSender } from "../deliveries/sender.ts";
import { createEndpointCheck } from "../deliveries/endpoint_check.ts";
import { urlProblem } from "../deliveries/endpoint_url.ts";
import type { WebhookOptions } from "./message.ts";

/** What the outbound clients of a webhook service are created with. */
export interface OutboundClientsOptions {
  readonly options: WebhookOptions;
  /** The clock of this machine. */
  readonly clock: Clock;
  /** That of the store: a date in `Retry-After` becomes a time that is stored. */
  readonly storeClock: Clock;
  readonly secretBox: SecretBox;
}

/** The outbound clients of a webhook service; `fetch` is for the steps of workflows. */
export type OutboundClients = ReturnType<typeof createOutboundClients>;

/** Creates the clients. Throws when the file of authorities or the proxy cannot be used. */
export function createOutboundClients(
  { options, clock, storeClock, secretBox }: OutboundClientsOptions,
) {
  const { connectTimeoutMs, caFile, proxy, timeoutMs, version } = options;
  const allow = new Cidrs(options.allowCidrs);
  const newId = () => crypto.randomUUID();
  const userAgent = `Weir/${version}`;
  const sender = createSender({ allow, connectTimeoutMs, caFile, proxy, userAgent, clock: storeClock });
  const fetch = createGuardedFetch({
    allow: new Cidrs(options.workflowAllowCidrs),
    connectTimeoutMs,
    userAgent,
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
    /** Why an endpoint may not have this URL; nothing when it may. */
    urlProblem: (url: string) => urlProblem(url, allow, lookups),
    close: async () => void await Promise.all([sender.close(), fetch.close()]),
  };
}
