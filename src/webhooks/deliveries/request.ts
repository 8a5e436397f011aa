import { CONTENT_TYPES } from "../model/delivery_body.ts";
import type { Sealed } from "../model/records.ts";
import { signature, standardWebhooksHeaders } from "../model/signature.ts";
import { signingSecrets } from "../model/signing_secrets.ts";
import type { ClaimedDelivery } from "../store/store.ts";
import { openCredentials, type Unsealer } from "./credentials.ts";
import type { OutgoingDelivery } from "./sender.ts";

/** Options of `deliveryRequest`. */
interface DeliveryRequestOptions {
  readonly secretBox: Unsealer;
  /** Decides which secrets sign, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** The time in the signed headers. */
  readonly sentAt: number;
  readonly version: string;
  /** Of an attempt, where its endpoint sets none. */
  readonly timeoutMs: number;
}

/** The request of an attempt: the stored bytes are signed and sent. Throws where the endpoint cannot sign. */
export async function deliveryRequest(
  { delivery, endpoint, body, form }: Pick<ClaimedDelivery, "delivery" | "endpoint" | "body" | "form">,
  { secretBox, now, sentAt, version, timeoutMs }: DeliveryRequestOptions,
): Promise<OutgoingDelivery> {
  const [signing, ...others] = signingSecrets(endpoint, now);
  if (signing === undefined) throw new Error("Cannot sign: the endpoint has no secret");
  const [secret, headers, { authorization, ...credentials }, ...opened] = await Promise.all([
    secretBox.unseal(signing.sealed),
    endpoint.headers === undefined ? "{}" : secretBox.unseal(endpoint.headers),
    openCredentials(endpoint, secretBox),
    // Where its key is missing, which is reported, the delivery leaves with the first signature.
    ...others.map(({ sealed }) => secretBox.unseal(sealed).catch(() => undefined)),
  ]);
  const secrets = opened.filter((other) => other !== undefined);
  const timestampSeconds = Math.floor(sentAt / 1_000);
  const [ours, further, standard] = await Promise.all([
    signature(secret, body),
    Promise.all(secrets.map((other) => signature(other, body))),
    endpoint.standardWebhooks
      ? standardWebhooksHeaders({
        id: delivery.id,
        timestampSeconds,
        body,
        secrets: [secret, ...secrets],
      })
      : undefined,
  ]);
  return {
    url: endpoint.url,
    headers: {
      ...JSON.parse(headers),
      ...(authorization === undefined ? {} : { authorization }),
      "content-type": form === undefined ? "application/json" : CONTENT_TYPES[form],
      "user-agent": `Weir/${version}`,
      "x-svc-event": delivery.event,
      "x-svc-signature": ours,
      ...(further.length === 0 ? {} : { "x-svc-signature-other": further.join(", ") }),
      "x-svc-delivery": delivery.id,
      "x-svc-timestamp": `${timestampSeconds}`,
      ...standard,
    },
    body,
    timeoutMs: endpoint.timeoutMs ?? timeoutMs,
    ...credentials,
  };
}

/** Headers that an attempt keeps: of those that are no credentials, the ones that nothing else tells. */
const KEPT_HEADERS = [
  "content-type",
  "x-svc-timestamp",
  "x-svc-signature",
  "x-svc-signature-other",
  "webhook-signature",
] as const;

/** The headers of a request that its attempt keeps. */
export function keptHeaders(
  { headers }: Pick<OutgoingDelivery, "headers">,
): Readonly<Record<string, string>> {
  const kept = KEPT_HEADERS.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

const MAX_TEXTS = 1_000;

/** Caches what was unsealed: every attempt of an endpoint needs the same secret, and opening it takes a while. */
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
