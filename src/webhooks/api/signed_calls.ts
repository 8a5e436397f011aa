import { ThrottledLog } from "../../base/throttled_log.ts";
import type { Unsealer } from "../deliveries/credentials.ts";
import { OpenedTexts } from "../deliveries/request.ts";
import type { Trigger, TriggerSecret, TriggerVerification } from "../model/records.ts";
import type { CallHeaders } from "../model/signature_header.ts";
import { weaknessOf } from "../model/signed_delivery.ts";
import { type SnsMessage, snsWeaknessOf } from "../model/sns_message.ts";
import {
  SIGNATURE_REFUSALS,
  type SignatureRefusal,
  signatureRefusal,
} from "../model/trigger_verification.ts";
import type { WebhookStore } from "../store/store.ts";
import { findSignedTrigger } from "../store/operations/triggers.ts";
import type { SignedTriggerCall } from "./calls.ts";
import { SnsCalls, type SnsCallsOptions } from "./sns_calls.ts";
import { notFound, unavailable, UNSIGNED, WebhookRefusal } from "./problem.ts";

/** Options of `SignedCalls`. */
export interface SignedCallsOptions extends SnsCallsOptions {
  readonly store: WebhookStore;
  readonly secretBox: Unsealer;
  /** `TRIGGER_PUBLIC_URL`, without a slash at its end. */
  readonly publicUrl?: string | undefined;
}

/** A trigger whose signature a call has. */
type SignedTrigger = Trigger & { readonly verify: TriggerVerification };

/** A verified call. */
interface VerifiedCall {
  readonly trigger: SignedTrigger;
  /** The body, if the scheme is `sns`. */
  readonly message?: SnsMessage | undefined;
}

/** An unknown trigger is refused after the same work as one with a wrong signature. */
const ABSENT = { verify: { scheme: "github" }, secrets: ["there is no trigger"] } as const;

const LONGER_PATH = "the path has a slash after the name of the trigger";
const MAX_SHOWN_NAME = 64;
const WEAK_INTERVAL_MS = 3_600_000;

/** The signature may be that of the secret that cannot be read, so the call is to be repeated later. */
const UNREADABLE = unavailable(
  "store_unavailable",
  "Cannot verify the signature: a secret of the trigger cannot be read",
);

/** Verifies signed calls. The answer does not say why a call is refused, so the log and the metrics do. */
export class SignedCalls {
  /** Answers messages of Amazon SNS that are no notifications. */
  readonly sns: SnsCalls;
  readonly #options: SignedCallsOptions;
  /** Every call of a trigger needs the same secrets. */
  readonly #opened: OpenedTexts;
  readonly #log: ThrottledLog;
  readonly #weak: ThrottledLog;
  readonly #refusals = new Map<SignatureRefusal, number>();

  constructor(options: SignedCallsOptions) {
    this.#options = options;
    this.sns = new SnsCalls(options);
    this.#opened = new OpenedTexts(options.secretBox);
    this.#log = new ThrottledLog(options.logger, options);
    this.#weak = new ThrottledLog(options.logger, { ...options, intervalMs: WEAK_INTERVAL_MS });
  }

  /** Numbers of refused calls of existing triggers, by reason. */
  get refusals(): ReadonlyMap<SignatureRefusal, number> {
    return this.#refusals;
  }

  /** The trigger of a signed call; throws a `WebhookRefusal` that is the same for an unknown one. */
  async verify(
    { name, target, body, repeated, requestId }: SignedTriggerCall,
    headers: CallHeaders,
  ): Promise<VerifiedCall> {
    const { store, clock, wallClock = clock, publicUrl } = this.#options;
    const now = wallClock.now();
    const trigger = await store.read(findSignedTrigger, name);
    if (trigger?.verify === undefined) {
      await signatureRefusal(ABSENT.verify, { headers, body }, { secrets: ABSENT.secrets, now });
      const unknown = { trigger: name.slice(0, MAX_SHOWN_NAME), requestId };
      // No trigger has such a name, so this tells nothing about triggers.
      const isLonger = name.includes("/");
      const reason = isLonger ? LONGER_PATH : "no trigger of this name verifies signatures";
      this.#log.warning(reason, "Signed call of an unknown trigger refused", { ...unknown, reason });
      throw isLonger ? notFound(`this trigger: ${LONGER_PATH}`) : new WebhookRefusal(UNSIGNED);
    }
    const { secrets, failure } = await this.#open(trigger.secrets ?? []);
    const signed = { target, headers, repeated, body };
    const checked = trigger.verify.scheme === "sns"
      ? await this.sns.check(trigger.verify, body)
      : await signatureRefusal(trigger.verify, signed, { secrets, now, publicUrl });
    const message = typeof checked === "object" ? checked : undefined;
    const refusal = typeof checked === "string" ? checked : undefined;
    if (refusal === undefined) {
      this.#warn(message === undefined ? weaknessOf(trigger.verify) : snsWeaknessOf(message), name);
      return { trigger: { ...trigger, verify: trigger.verify }, message };
    }
    if (failure !== undefined) {
      this.#log.error("secret", "Cannot verify a trigger call", { trigger: name, requestId, error: failure });
      throw new WebhookRefusal(UNREADABLE);
    }
    this.#note(refusal, { trigger: name, scheme: trigger.verify.scheme, requestId });
    throw new WebhookRefusal(UNSIGNED);
  }

  /** The secret whose signature a call has that was verified. */
  async secretOf(trigger: SignedTrigger, call: SignedTriggerCall, headers: CallHeaders): Promise<string> {
    const { clock, wallClock = clock, publicUrl } = this.#options;
    const { secrets } = await this.#open(trigger.secrets ?? []);
    const { target, repeated, body } = call;
    const signed = { target, headers, repeated, body };
    for (const secret of secrets) {
      const options = { secrets: [secret], now: wallClock.now(), publicUrl };
      if (await signatureRefusal(trigger.verify, signed, options) === undefined) return secret;
    }
    throw new WebhookRefusal(UNSIGNED);
  }

  async #open(
    secrets: readonly TriggerSecret[],
  ): Promise<{ readonly secrets: readonly string[]; readonly failure: unknown }> {
    const opened = await Promise.allSettled(secrets.map(({ sealed }) => this.#opened.unseal(sealed)));
    const failed = opened.find((one) => one.status === "rejected");
    return {
      secrets: opened.flatMap((one) => one.status === "fulfilled" ? [one.value] : []),
      failure: failed?.reason,
    };
  }

  /** At most once an hour: a call with a weak signature is accepted. */
  #warn(reason: string | undefined, trigger: string): void {
    if (reason === undefined) return;
    this.#weak.warning("weak", "Weak signature of a trigger call accepted", { trigger, reason });
  }

  #note(
    refusal: SignatureRefusal,
    fields: { readonly trigger: string; readonly scheme: string; readonly requestId: string },
  ): void {
    this.#refusals.set(refusal, (this.#refusals.get(refusal) ?? 0) + 1);
    const reason = SIGNATURE_REFUSALS[refusal];
    this.#log.warning(refusal, "Signature of a trigger call refused", { ...fields, reason });
  }
}
