import type { EndpointSecret, Sealed } from "../model/records.ts";
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

/** Opens what was sealed. */
export interface Unsealer {
  unseal(sealed: Sealed): Promise<string>;
}

const MAX_TEXTS = 1_000;

/** Remembers what was unsealed: every attempt of an endpoint needs the same secret, and opening it takes a while. */
export class OpenedTexts implements Unsealer {
  readonly #box: Unsealer;
  readonly #texts = new Map<string, string>();

  constructor(box: Unsealer) {
    this.#box = box;
  }

  async unseal(sealed: Sealed): Promise<string> {
    const name = `${sealed.keyId} ${String.fromCharCode(...sealed.bytes.subarray(0, 64))}`;
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const text = await this.#box.unseal(sealed);
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear();
    this.#texts.set(name, text);
    return text;
  }
}
