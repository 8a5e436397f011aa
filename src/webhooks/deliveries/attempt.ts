import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Lease } from "../../threads/leases.ts";
import type { LogFields, Logger } from "../../base/log.ts";
import { waitUnlessAborted } from "../../base/wait.ts";
import { afterAttempt, type AfterAttemptOptions, type AttemptOutcome } from "../model/delivery.ts";
import type { AuditAction } from "../resources/audit_entry.ts";
import type { AuditEntry } from "../model/records.ts";
import { deliveryFailedEvent } from "../model/endpoint_events.ts";
import { finishAttempt, type FinishedAttempt } from "../store/operations/delivery_claims.ts";
import type { ClaimedDelivery, WebhookStore } from "../store/store.ts";
import type { AttemptReport } from "./metrics.ts";
import type { Unsealer } from "./credentials.ts";
import { deliveryRequest, keptHeaders } from "./request.ts";
import type { DeliverySender, OutgoingDelivery, SendResult } from "./sender.ts";

/** The steps of an attempt at which a process may end. */
export type AttemptStep = "claim" | "send" | "write_back";

/** Called before and after each step. */
type AttemptSteps = (when: "before" | "after", step: AttemptStep) => void | Promise<void>;

/** Parts that all attempts share. */
export interface AttemptParts {
  readonly store: WebhookStore;
  readonly sender: DeliverySender;
  readonly secretBox: Unsealer;
  readonly version: string;
  /** Of an attempt, where its endpoint sets none. */
  readonly timeoutMs: number;
  /** The time of all that is stored, which several machines may share. */
  readonly clock: Clock;
  /** The time in signed requests; `clock` when absent. */
  readonly wallClock?: Pick<Clock, "now"> | undefined;
  readonly random: () => number;
  readonly newId: () => string;
  readonly logger: Logger;
  readonly onAttempt?: ((report: AttemptReport) => void) | undefined;
  /** Called around each step of an attempt; what it throws is a fault of the step. */
  readonly atAttempt?: AttemptSteps | undefined;
}

/** Options of `makeAttempt`. */
interface AttemptOptions extends AttemptParts {
  readonly onStoreError: (error: unknown) => void;
  /** A delivery failed permanently. */
  readonly onFailed: (facts: LogFields) => void;
}

/**
 * The end of an attempt: it was written down, or it was aborted; its claim was lost; its lease had ended before the
 * request left; or there was an internal error. The last two keep their claim.
 */
type AttemptEnd = "over" | "lost" | "late" | "faulty";

/** The status of a receiver that no longer exists. */
const GONE = 410;
/** The first wait before a result is written again, and the longest. */
const REWRITE_MS = [100, 500] as const;

const GIVEN_UP: SendResult = { errorKind: "interrupted", error: "interrupted before the request was sent" };

/** Makes the attempt of a claim and writes its result. Never rejects. */
export async function makeAttempt(
  claimed: ClaimedDelivery,
  lease: Lease,
  options: AttemptOptions,
): Promise<AttemptEnd> {
  const { clock, atAttempt = () => {}, onAttempt, onStoreError } = options;
  const { delivery, endpoint, claimId, attempt: number, startedAt, manual } = claimed;
  try {
    await atAttempt("after", "claim");
    const begin = clock.elapsed();
    const result = await sent(claimed, lease, options);
    const tookMs = clock.elapsed() - begin;
    // The next owner of the claim closes the attempt.
    if (lease.signal.aborted) return "over";
    if (result === GIVEN_UP) return "late";
    const outcome = outcomeOf(result, clock.now());
    await atAttempt("before", "write_back");
    const moment = { now: outcome.finishedAt, random: options.random(), manual, startedAt };
    const isUnrenderable = claimed.problem !== undefined;
    const end = { ...outcome, retryAfterMs: result.retryAfterMs, isUnrenderable };
    const finished = { deliveryId: delivery.id, claimId, number, outcome };
    const change = changeAfter(claimed, end, moment, options);
    const isHeld = await writeBack({ ...finished, ...change }, options, lease.signal);
    if (isHeld === undefined) return "over";
    if (!isHeld) return "lost";
    await atAttempt("after", "write_back");
    const { status, errorKind, error } = outcome;
    if (change.audit !== undefined && change.change?.state === "failed") {
      const facts = { delivery: delivery.id, endpoint: endpoint.id, event: delivery.event, attempts: number };
      options.onFailed({ ...facts, reason: change.change.reason, status, error });
    }
    const attempt = {
      deliveryId: delivery.id,
      endpointId: endpoint.id,
      event: delivery.event,
      number,
      manual,
      isUnrenderable,
    };
    const isGone = status === GONE && endpoint.onGone === "disable";
    onAttempt?.({ ...attempt, startedAt, tookMs, result: outcome.result, status, errorKind, isGone });
    return "over";
  } catch (error) {
    onStoreError(error);
    return "faulty";
  }
}

/** The result of an attempt, with the headers to keep if a request was sent. */
type SentAttempt = SendResult & Pick<AttemptOutcome, "headers">;

async function sent(
  claimed: ClaimedDelivery,
  { signal, isHeld }: Lease,
  options: AttemptOptions,
): Promise<SentAttempt> {
  const { sender, clock, wallClock = clock, atAttempt = () => {} } = options;
  if (claimed.problem !== undefined) return { errorKind: "unsendable", error: claimed.problem };
  let request: OutgoingDelivery;
  try {
    const times = { now: clock.now(), sentAt: wallClock.now() };
    request = await deliveryRequest(claimed, { ...options, ...times });
  } catch (error) {
    return { errorKind: "unsendable", error: errorText(error) };
  }
  await atAttempt("before", "send");
  // The process stops, or it was suspended for so long that another one may have the claim by now.
  if (signal.aborted || !isHeld()) return GIVEN_UP;
  const result = await sender.send(request, { signal }).catch((error: unknown): SendResult => {
    // A sender never rejects; the schedule keeps one that does from being called without a pause.
    options.logger.error("Sender failed with an internal error", { delivery: claimed.delivery.id, error });
    return { errorKind: "unsendable", error: "an internal error; see the log" };
  });
  await atAttempt("after", "send");
  return { ...result, headers: keptHeaders(request) };
}

function outcomeOf(result: SentAttempt, finishedAt: number): AttemptOutcome {
  const { status, errorKind, error, response, headers } = result;
  const isAcknowledged = errorKind === undefined && status !== undefined && status >= 200 && status < 300;
  const name = isAcknowledged ? "acknowledged" : "failed";
  return { result: name, finishedAt, status, errorKind, error, response, headers };
}

/** Writes the result, and retries while the store fails; false when the claim was lost, nothing when aborted. */
async function writeBack(
  finished: FinishedAttempt,
  { store, clock, onStoreError }: AttemptOptions,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  for (let waitMs: number = REWRITE_MS[0];; waitMs = Math.min(2 * waitMs, REWRITE_MS[1])) {
    try {
      return await store.write(finishAttempt, finished);
    } catch (error) {
      onStoreError(error);
      if (!await waitUnlessAborted(waitMs, clock, signal)) return undefined;
    }
  }
}

function changeAfter(
  { delivery, endpoint }: ClaimedDelivery,
  end: Parameters<typeof afterAttempt>[1],
  moment: AfterAttemptOptions,
  { newId }: AttemptOptions,
): Pick<FinishedAttempt, "change" | "audit" | "event"> {
  const { change } = afterAttempt(delivery, end, moment);
  const details = { endpointId: endpoint.id, eventId: delivery.eventId, event: delivery.event };
  const entry = (action: AuditAction, more: Readonly<Record<string, unknown>>): AuditEntry => ({
    id: newId(),
    at: moment.now,
    actor: "system",
    action,
    object: `delivery:${delivery.id}`,
    details: { ...details, ...more },
  });
  if (change?.state === "failed" && delivery.state !== "failed") {
    const { status, error } = end;
    const failed = { ...delivery, ...change };
    const event = deliveryFailedEvent(failed, { newEventId: newId(), now: moment.now, last: end });
    return { change, audit: [entry("delivery.failed", { reason: change.reason, status, error })], event };
  }
  if (change?.state === "acknowledged" && delivery.state === "failed") {
    return { change, audit: [entry("delivery.acknowledged", { by: "resend" })] };
  }
  return { change };
}
