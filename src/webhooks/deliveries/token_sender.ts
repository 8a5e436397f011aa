import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { AccessTokens, VersionedGrant } from "./access_tokens.ts";
import { type DeliverySender, INTERRUPTED, type OutgoingDelivery, type SendResult } from "./sender.ts";

/** The options of one attempt. */
interface AttemptOptions {
  readonly tokens: AccessTokens;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The end of the attempt, by the clock's `elapsed`. */
  readonly end: number;
}

/** Adds access tokens to the deliveries that require them. */
export function withAccessTokens(
  sender: DeliverySender,
  tokens: AccessTokens,
  clock: Clock,
): DeliverySender {
  return {
    async send(delivery, { signal }) {
      const { grant } = delivery;
      if (grant === undefined) return await sender.send(delivery, { signal });
      const options = { tokens, clock, signal, end: clock.elapsed() + delivery.timeoutMs };
      return await sendWithToken(sender, { ...delivery, grant }, options);
    },
  };
}

/** Sends a delivery; once more with another token if the receiver rejects the first one. */
async function sendWithToken(
  sender: DeliverySender,
  delivery: OutgoingDelivery & { readonly grant: VersionedGrant },
  options: AttemptOptions,
): Promise<SendResult> {
  const { grant } = delivery;
  const { tokens, signal, end, clock } = options;
  const first = await tokenOr(grant, delivery.timeoutMs, options);
  if ("failure" in first) return first.failure;
  const send = (token: string) => {
    const headers = { ...delivery.headers, authorization: `Bearer ${token}` };
    const timeoutMs = Math.max(1, end - clock.elapsed());
    return sender.send({ ...delivery, headers, timeoutMs }, { signal });
  };
  const result = await send(first.token.text);
  if (result.status !== 401 || !tokens.forget(grant, first.token)) return result;
  const second = await tokenOr(grant, delivery.timeoutMs, options);
  if ("failure" in second) return second.failure;
  return second.token.text === first.token.text ? result : await send(second.token.text);
}

/** A token, or the result of an attempt without one. */
async function tokenOr(
  grant: VersionedGrant,
  timeoutMs: number,
  { tokens, clock, signal, end }: AttemptOptions,
) {
  const late = new AbortController();
  const cancelTimer = clock.after(Math.max(0, end - clock.elapsed()), () => late.abort());
  const onAbort = () => late.abort();
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return { token: await tokens.get(grant, late.signal) };
  } catch (error) {
    if (signal.aborted) return { failure: INTERRUPTED };
    const isLate = late.signal.aborted;
    const failure: SendResult = {
      errorKind: "token",
      error: isLate ? `no access token within ${timeoutMs} ms` : errorText(error),
    };
    return { failure };
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", onAbort);
  }
}
