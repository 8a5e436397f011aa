import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import type { Fetch } from "../../rest/mod.ts";
import type { Trigger, TriggerVerification } from "../model/records.ts";
import {
  isCertificateAtHost,
  isConfirmationAtHost,
  isSignedBy,
  isUsableChain,
  type SnsMessage,
  snsMessageOf,
} from "../model/sns_message.ts";
import { ageRefusal, type SignatureRefusal } from "../model/trigger_verification.ts";
import type { WebhookAnswer } from "./calls.ts";
import { unavailable, WebhookRefusal } from "./problem.ts";
import { PageError, SnsPages } from "./sns_pages.ts";

/** Options of `SnsCalls`. */
export interface SnsCallsOptions {
  /** Requests of URLs that providers name. */
  readonly providerFetch: Fetch;
  readonly clock: Clock;
  /** The time that senders sign; `clock` when absent. */
  readonly wallClock?: Pick<Clock, "now"> | undefined;
  readonly logger: Logger;
}

/** Amazon SNS repeats a call that is answered so. */
const UNANSWERED = unavailable(
  "sender_unavailable",
  "Cannot accept the message: Amazon SNS did not answer a request for it",
);
const ANSWER: WebhookAnswer = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: "{}",
  isChallenge: true,
};
/** Most confirmations that are remembered. */
const MAX_CONFIRMED = 100;

/** Verifies messages of Amazon SNS, and confirms subscriptions to the topics of triggers. */
export class SnsCalls {
  readonly #options: SnsCallsOptions;
  readonly #pages: SnsPages;
  readonly #log: ThrottledLog;
  /** By the identifiers of their messages: a repeated message confirms nothing again. */
  readonly #confirming = new Map<string, Promise<boolean>>();

  constructor(options: SnsCallsOptions) {
    this.#options = options;
    this.#pages = new SnsPages({ fetch: options.providerFetch, clock: options.clock });
    this.#log = new ThrottledLog(options.logger, options);
  }

  /** The message in a body, or why it is refused. What needs no request to Amazon is checked first. */
  async check(
    { topics = [], toleranceSeconds }: TriggerVerification,
    body: Uint8Array,
  ): Promise<SnsMessage | SignatureRefusal> {
    const { clock, wallClock = clock } = this.#options;
    const now = wallClock.now();
    const message = snsMessageOf(body);
    if (message === undefined) return "malformed_message";
    if (!topics.includes(message.topic)) return "foreign_topic";
    if (!isCertificateAtHost(message)) return "foreign_url";
    const behind = Math.floor(now / 1_000) - Math.floor(message.time / 1_000);
    const refusal = ageRefusal(behind, toleranceSeconds);
    if (refusal !== undefined) return refusal;
    const { certificateUrl, topic } = message;
    const reading = this.#pages.certificate(certificateUrl, (chain) => isUsableChain(chain, topic, now));
    const certificate = await this.#asked(reading, message);
    if (certificate === undefined) return "wrong_certificate";
    if (!isSignedBy(message, certificate)) return "wrong_signature";
    const isForeign = message.type === "SubscriptionConfirmation" && !isConfirmationAtHost(message);
    return isForeign ? "foreign_url" : message;
  }

  /** Answers a verified message that is no notification, and confirms a subscription. */
  async answer({ name }: Trigger, message: SnsMessage, requestId: string): Promise<WebhookAnswer> {
    const noted = { trigger: name, topic: message.topic, requestId };
    if (message.type === "UnsubscribeConfirmation") {
      this.#options.logger.warning("Subscription of a trigger ended", noted);
      return ANSWER;
    }
    const before = this.#confirming.get(message.id);
    if (!await this.#asked(before ?? this.#confirm(message), message)) {
      const reason = "Amazon SNS refused the token of the message";
      this.#options.logger.error("Subscription of a trigger not confirmed", { ...noted, reason });
      throw new WebhookRefusal(UNANSWERED);
    }
    if (before === undefined) this.#options.logger.info("Subscription of a trigger confirmed", noted);
    return ANSWER;
  }

  #confirm({ id, subscribeUrl }: SnsMessage): Promise<boolean> {
    const [oldest] = this.#confirming.keys();
    if (this.#confirming.size >= MAX_CONFIRMED && oldest !== undefined) this.#confirming.delete(oldest);
    const confirming = this.#pages.visit(subscribeUrl);
    this.#confirming.set(id, confirming);
    const forget = () => this.#confirming.delete(id);
    confirming.then((isConfirmed) => isConfirmed || forget(), forget);
    return confirming;
  }

  /** The answer of Amazon; without one, the call is refused so that it is repeated. */
  async #asked<T>(answer: Promise<T>, { topic }: SnsMessage): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      this.#log.error("pages", "Cannot ask Amazon SNS about a trigger call", { topic, error });
      throw new WebhookRefusal(UNANSWERED);
    }
  }
}
