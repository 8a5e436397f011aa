import type { EndpointSecret } from "../model/records.ts";
import type { OutgoingDelivery } from "./sender.ts";
import { signature, standardWebhooksHeaders } from "../model/signature.ts";
import type { ClaimedDelivery } from "../store/store.ts";

/** What the request of an attempt is made of. */
export interface DeliveryRequestOptions {
  /** The signing secret as it was shown. */
  readonly secret: string;
  /** The endpoint's own headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** When it is sent, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Of Weir. */
  readonly version: string;
  /** Where the endpoint has none of its own. */
  readonly timeoutMs: number;
}

/** The request of an attempt. The stored bytes are what is signed and sent. */
export async function deliveryRequest(
  { delivery, endpoint, body }: Pick<ClaimedDelivery, "delivery" | "endpoint" | "body">,
  { secret, headers, now, version, timeoutMs }: DeliveryRequestOptions,
): Promise<OutgoingDelivery> {
  const timestampSeconds = Math.floor(now / 1_000);
  const standard = endpoint.standardWebhooks
    ? await standardWebhooksHeaders({ id: delivery.id, timestampSeconds, body, secret })
    : {};
  return {
    url: endpoint.url,
    headers: {
      ...headers,
      "content-type": "application/json",
      "user-agent": `Weir/${version}`,
      "x-svc-event": delivery.event,
      "x-svc-signature": await signature(secret, body),
      "x-svc-delivery": delivery.id,
      "x-svc-timestamp": `${timestampSeconds}`,
      ...standard,
    },
    body,
    timeoutMs: endpoint.timeoutMs ?? timeoutMs,
  };
}

/**
 * The secret that signs: of those that are active the one made last, the oldest where none is yet. One that was staged
 * before another that is active already has been overtaken, and does not come back when its own time comes.
 */
export function signingSecret(secrets: readonly EndpointSecret[], now: number): EndpointSecret | undefined {
  return secrets.find(({ activeAt }) => activeAt <= now) ?? secrets.at(-1);
}
