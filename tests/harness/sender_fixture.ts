import type { Socket } from "node:net";
import { Cidrs } from "../../src/net/outbound/address_ranges.ts";
import {
  createSender,
  type OutgoingDelivery,
  type SenderOptions,
  type SendResult,
} from "../../src/webhooks/deliveries/sender.ts";
import { RawServer } from "./rest_fixture.ts";
import { FakeClock } from "./fake_clock.ts";

/** The loopback of the tests, open. */
export const LOOPBACK = new Cidrs(["127.0.0.0/8", "::1/128"]);

/** A text that no error may show. */
export const SECRET = "hunter2";

/** A delivery full of secrets, to a URL. */
export function delivery(url: string, timeoutMs = 60_000): OutgoingDelivery {
  const body = new TextEncoder().encode(`{"event":"a.b","data":{"x":"${SECRET}"}}`);
  const headers = {
    "content-type": "application/json",
    "x-svc-signature": `sha256=${SECRET}`,
    authorization: `Bearer ${SECRET}`,
  };
  return { url, headers, body, timeoutMs };
}

/** Sends one delivery with its own sender; the receiver's date is left out, by a clock that stands still while the machine does. */
export async function sendOnce(
  url: string,
  options: Partial<SenderOptions> & { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
): Promise<SendResult> {
  const { timeoutMs, signal = new AbortController().signal, ...own } = options;
  const sender = createSender({
    allow: LOOPBACK,
    connectTimeoutMs: 60_000,
    userAgent: "Weir/test",
    clock: FakeClock.byTurns(),
    ...own,
  });
  try {
    const { date: _, ...result } = await sender.send(delivery(url, timeoutMs), { signal });
    return result;
  } finally {
    await sender.close();
  }
}

/** A receiver that does this to each request. */
export function receiver(act: (socket: Socket, head: string) => void): Promise<RawServer> {
  return RawServer.start(act);
}
