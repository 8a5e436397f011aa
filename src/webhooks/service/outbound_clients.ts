import type { Clock } from "../../base/clock.ts";
import { readAuthorities } from "../../net/tls_files.ts";
import { Cidrs } from "../../net/outbound/address_ranges.ts";
import { createGuardedFetch } from "../../net/outbound/fetch.ts";
import type { SecretBox } from "../secrets/secret_box.ts";
import { AccessTokens } from "../deliveries/access_tokens.ts";
import { createSender } from "../deliveries/sender.ts";
import { withAccessTokens } from "../deliveries/token_sender.ts";
import { createEndpointCheck } from "../deliveries/endpoint_check.ts";
import { urlProblem } from "../../net/outbound/url_problem.ts";
import type { WebhookOptions } from "./message.ts";

/** Options of the outbound clients of a webhook service. */
export interface OutboundClientsOptions {
  readonly options: WebhookOptions;
  /** The clock of this machine. */
  readonly clock: Clock;
  /** That of the store: a date in `Retry-After` becomes a time that is stored. */
  readonly storeClock: Clock;
  readonly secretBox: SecretBox;
}

/** The outbound clients; `fetch` is for steps of workflows, `providerFetch` for URLs that providers name. */
export type OutboundClients = Awaited<ReturnType<typeof createOutboundClients>>;

/** Creates the clients. Throws when the file of authorities or the proxy cannot be used. */
export async function createOutboundClients(
  { options, clock, storeClock, secretBox }: OutboundClientsOptions,
) {
  const { connectTimeoutMs, caFile, timeoutMs, version } = options;
  const allow = new Cidrs(options.allowCidrs);
  const newId = () => crypto.randomUUID();
  const userAgent = `Weir/${version}`;
  const authorities = caFile === undefined ? undefined : await readAuthorities("WEBHOOK_CA_FILE", caFile);
  const proxy = options.proxy === undefined ? undefined : new URL(options.proxy);
  const dial = { allow, connectTimeoutMs, authorities, proxy, clock };
  const tokenFetch = createGuardedFetch({ ...dial, userAgent, isPlainInsideOnly: true });
  const tokens = new AccessTokens({ fetch: tokenFetch, clock });
  const plainSender = createSender({ ...dial, userAgent, clock: storeClock });
  const sender = withAccessTokens(plainSender, tokens, clock);
  const fetch = createGuardedFetch({ ...dial, allow: new Cidrs(options.workflowAllowCidrs), userAgent });
  const providerFetch = createGuardedFetch({ ...dial, userAgent });
  const lookups = { clock, lookupTimeoutMs: connectTimeoutMs, isProxied: proxy !== undefined };
  return {
    sender,
    fetch,
    providerFetch,
    check: createEndpointCheck({ ...dial, sender, tokens, secretBox, newId, timeoutMs, version }),
    /** Why an endpoint may not have this URL; nothing when it may. */
    urlProblem: (url: string) => urlProblem(url, allow, lookups),
    close: async () => {
      tokens.close();
      const clients = [plainSender, tokenFetch, fetch, providerFetch];
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}
