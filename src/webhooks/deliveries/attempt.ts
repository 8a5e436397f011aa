import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import {
  afterAttempt,
  type AfterAttemptOptions,
  type AttemptEnd,
  type AttemptOutcome,
} from "../model/delivery.ts";
import type { AttemptReport } from "./metrics.ts";
import type { DispatcherOptions } from "./dispatcher_options.ts";
import { deliveryRequest, signingSecret } from "./request.ts";
import type { AuditEntry } from "../model/records.ts";
import type { OutgoingDelivery, SendResult } from "./sender.ts";
import { releaseClaims } from "../store/claims.ts";
import { beginAttempt, finishAttempt, type FinishedAttempt } from "../store/delivery_claims.ts";
import type { ClaimedDelivery } from "../store/store.ts";

/** What an attempt is made with. */
export interface AttemptOptions extends
  Pick<
    DispatcherOptions,
    | "store"
    | "sender"
    | "secretBox"
    | "clock"
    | "wallClock"
    | "random"
    | "newId"
    | "logger"
    | "timeoutMs"
    | "version"
    | "at"
  > {
  /** Ends it without a result: the claim was lost, or the process stops. */
  readonly signal: AbortSignal;
  /** Whether the claim is held for sure at this moment. */
  readonly isHeld: () => boolean;
  readonly onAttempt: (report: AttemptReport) => void;
  /** The claim was no longer held when something was to be written. */
  readonly onLost: () => void;
  readonly onStoreError: (error: unknown) => void;
  /** The attempt could not be made; its claim has to be released. */
  readonly onUnused: () => void;
}

/** The first wait before a result is written again, and the longest. */
const REWRITE_MS = [100, 500] as const;

const GIVEN_UP: SendResult = { errorKind: "interrupted", error: "it was given up before it was sent" };

/** Makes one attempt and writes down what came of it. Never rejects. */
export async function makeAttempt(claimed: ClaimedDelivery, options: AttemptOptions): Promise<void> {
  const { store, clock, at = () => {} } = options;
  const { delivery, endpoint, claimId, attempt: number, manual } = claimed;
  try {
    await at("after", "claim");
    const startedAt = clock.now();
    await at("before", "attempt_row");
    const isHeld = await store.write(beginAttempt, {
      deliveryId: delivery.id,
      claimId,
      attempt: { number, startedAt, url: endpoint.url, manual },
    });
    if (!isHeld) return options.onLost();
    await at("after", "attempt_row");
    const begin = clock.elapsed();
    const result = await sent(claimed, options);
    const tookMs = clock.elapsed() - begin;
    // Given up: the next owner of the claim says what became of it.
    if (options.signal.aborted) return;
    if (result === GIVEN_UP) {
      options.onLost();
      return await store.write(releaseClaims, [claimId], clock.now());
    }
    const outcome = outcomeOf(result, clock.now());
    await at("before", "write_back");
    if (!await writeBack(claimed, outcome, { startedAt, retryAfterMs: result.retryAfterMs }, options)) return;
    await at("after", "write_back");
    const { status, errorKind } = outcome;
    options.onAttempt({
      ...{
        deliveryId: delivery.id,
        endpointId: endpoint.id,
        event: delivery.event,
        number,
        manual,
        startedAt,
      },
      ...{ tookMs, result: outcome.result, status, errorKind },
    });
  } catch (error) {
    options.onStoreError(error);
    options.onUnused();
  }
}

async function sent(claimed: ClaimedDelivery, options: AttemptOptions): Promise<SendResult> {
  const { sender, signal, isHeld, at = () => {} } = options;
  let request: OutgoingDelivery;
  try {
    request = await requestOf(claimed, options);
  } catch (error) {
    return { errorKind: "unsendable", error: errorText(error) };
  }
  await at("before", "send");
  // The claim was lost, or the process stops, before anything left; or it was stopped for so long that somebody else
  // may make the attempt by now.
  if (signal.aborted || !isHeld()) return GIVEN_UP;
  const result = await sender.send(request, { signal }).catch((error: unknown): SendResult => {
    // A sender never rejects. One that does has a fault, which the schedule keeps from being met without a pause.
    options.logger.error("Cannot send a delivery: a fault", { delivery: claimed.delivery.id, error });
    return { errorKind: "unsendable", error: "a fault inside Weir, which its log tells of" };
  });
  await at("after", "send");
  return result;
}

async function requestOf(claimed: ClaimedDelivery, options: AttemptOptions): Promise<OutgoingDelivery> {
  const { secretBox, clock, wallClock = clock, version, timeoutMs } = options;
  const { secrets, headers: sealed } = claimed.endpoint;
  const secret = signingSecret(secrets, clock.now());
  if (secret === undefined) throw new Error("Cannot sign: the endpoint has no secret");
  const [text, headers] = await Promise.all([
    secretBox.unseal(secret.sealed),
    sealed === undefined ? "{}" : secretBox.unseal(sealed),
  ]);
  return await deliveryRequest(claimed, {
    ...{ secret: text, headers: JSON.parse(headers), now: wallClock.now(), version, timeoutMs },
  });
}

function outcomeOf(result: SendResult, finishedAt: number): AttemptOutcome {
  const { status, errorKind, error, response } = result;
  const isAcknowledged = errorKind === undefined && status !== undefined && status >= 200 && status < 300;
  return {
    result: isAcknowledged ? "acknowledged" : "failed",
    finishedAt,
    ...{ status, errorKind, error, response },
  };
}

/**
 * Writes the result, and tries again while the store cannot be asked and the claim may still be held. Answers
 * whether it was written.
 */
async function writeBack(
  claimed: ClaimedDelivery,
  outcome: AttemptOutcome,
  facts: { readonly startedAt: number; readonly retryAfterMs: number | undefined },
  options: AttemptOptions,
): Promise<boolean> {
  const { store, clock, random, signal } = options;
  const { delivery, claimId, attempt: number, manual } = claimed;
  const now = outcome.finishedAt;
  const moment = { now, random: random(), manual, startedAt: facts.startedAt };
  const end = { ...outcome, retryAfterMs: facts.retryAfterMs };
  const { change, audit } = changeAfter(claimed, end, moment, options);
  let waitMs: number = REWRITE_MS[0];
  for (;;) {
    try {
      const isHeld = await store.write(finishAttempt, {
        deliveryId: delivery.id,
        claimId,
        number,
        outcome,
        change,
        audit,
      });
      if (!isHeld) options.onLost();
      return isHeld;
    } catch (error) {
      options.onStoreError(error);
      if (!await waited(waitMs, clock, signal)) return false;
      waitMs = Math.min(2 * waitMs, REWRITE_MS[1]);
    }
  }
}

function changeAfter(
  { delivery, endpoint }: ClaimedDelivery,
  end: AttemptEnd,
  moment: AfterAttemptOptions,
  { newId }: AttemptOptions,
): Pick<FinishedAttempt, "change" | "audit"> {
  const { change } = afterAttempt(delivery, end, moment);
  const details = { endpointId: endpoint.id, eventId: delivery.eventId, event: delivery.event };
  const entry = (action: string, more: Readonly<Record<string, unknown>>): AuditEntry => ({
    ...{ id: newId(), at: moment.now, actor: "system", action, object: `delivery:${delivery.id}` },
    details: { ...details, ...more },
  });
  if (change?.state === "failed" && delivery.state !== "failed") {
    const { status, error } = end;
    return { change, audit: [entry("delivery.failed", { reason: change.reason, status, error })] };
  }
  if (change?.state === "acknowledged" && delivery.state === "failed") {
    return { change, audit: [entry("delivery.acknowledged", { by: "resend" })] };
  }
  return { change };
}

/** False when the signal was aborted. */
async function waited(ms: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  const over = Promise.withResolvers<boolean>();
  const cancel = clock.after(ms, () => over.resolve(true));
  const onAbort = () => over.resolve(false);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await over.promise;
  } finally {
    cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
