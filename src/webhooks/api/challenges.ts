import { sha256OfText } from "../../base/byte_text.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { challengeOfBody, challengeOfQuery, isQueryCheck, shownToken } from "../model/challenge.ts";
import type { Trigger } from "../model/records.ts";
import { constantTimeEqual, hmac } from "../model/signature.ts";
import { findSignedTrigger, findTriggerByIdOrName } from "../store/operations/triggers.ts";
import type { WebhookStore } from "../store/store.ts";
import type { SignedTriggerCall, TriggerCheck, WebhookAnswer } from "./calls.ts";
import { refusal, WebhookRefusal, wrongMethod } from "./problem.ts";

/** Options of `Challenges`. */
interface ChallengesOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Answers the checks with which providers test the URL of a trigger. They start nothing. */
export class Challenges {
  readonly #options: ChallengesOptions;
  /** Anyone may send a check that shows nothing. */
  readonly #log: ThrottledLog;

  constructor(options: ChallengesOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.logger, options);
  }

  /** Answers `GET` and `HEAD`; refuses them as any other method where no trigger answers them. */
  async check({ name, method, query, requestId }: TriggerCheck): Promise<WebhookAnswer> {
    const found = await this.#options.store.read(findTriggerByIdOrName, name);
    const trigger = found?.name === name && found.enabled ? found : undefined;
    const { challenge } = trigger ?? {};
    const parameters = new URLSearchParams(query);
    const text = challenge === undefined || challenge === "microsoft" || method !== "GET"
      ? undefined
      : challengeOfQuery(challenge, parameters);
    if (trigger !== undefined && text !== undefined) {
      if (challenge !== "meta" || isTokenOf(trigger, shownToken(parameters))) {
        return this.#echo(text, { trigger, requestId });
      }
      const reason = "hub.verify_token is not the challenge token of the trigger";
      this.#log.warning("refused", "Challenge of a trigger refused", { trigger: name, requestId, reason });
    } else if (trigger?.probe === true) return challengeAnswer("text/plain; charset=utf-8", "");
    throw new WebhookRefusal(wrongMethod(["POST"]));
  }

  /** The answer to a check that is sent before anything is signed; nothing for a call. */
  async unsigned({ name, target, requestId }: SignedTriggerCall): Promise<WebhookAnswer | undefined> {
    const query = new URLSearchParams(/\?.*/s.exec(target)?.[0]);
    if (!isQueryCheck(query)) return undefined;
    const trigger = await this.#options.store.read(findSignedTrigger, name);
    if (trigger?.challenge !== "microsoft" || !trigger.enabled) return undefined;
    const text = challengeOfQuery("microsoft", query);
    return text === undefined ? undefined : this.#echo(text, { trigger, requestId });
  }

  /** The answer to a check in a signed body; nothing for a call. `secretOf` is the secret that signed it. */
  async signed(
    trigger: Trigger,
    { body, requestId, secretOf }: {
      readonly body: JsonObject;
      readonly requestId: string;
      readonly secretOf: () => Promise<string>;
    },
  ): Promise<WebhookAnswer | undefined> {
    const { challenge } = trigger;
    const check = challenge === undefined ? undefined : challengeOfBody(challenge, body);
    if (check === undefined) return undefined;
    const { text: plainToken } = check;
    if (plainToken === undefined) {
      throw refusal("invalid_challenge", "Cannot answer the challenge: its text has an unexpected form");
    }
    if (challenge === "discord") {
      this.#note({ trigger, requestId });
      if (plainToken === "") return { status: 204, headers: {}, body: "", isChallenge: true };
      return challengeAnswer("application/json", plainToken);
    }
    if (challenge !== "zoom") return this.#echo(plainToken, { trigger, requestId });
    const digest = await hmac(
      { secret: await secretOf(), form: "text" },
      new TextEncoder().encode(plainToken),
    );
    this.#note({ trigger, requestId });
    const answer = JSON.stringify({ plainToken, encryptedToken: digest.toHex() });
    return challengeAnswer("application/json", answer);
  }

  #echo(text: string, noted: { readonly trigger: Trigger; readonly requestId: string }): WebhookAnswer {
    this.#note(noted);
    return challengeAnswer("text/plain; charset=utf-8", text);
  }

  #note({ trigger, requestId }: { readonly trigger: Trigger; readonly requestId: string }): void {
    const { name, challenge } = trigger;
    this.#log.info("answered", "Challenge of a trigger answered", { trigger: name, challenge, requestId });
  }
}

function isTokenOf({ challengeTokenHash = "" }: Trigger, token: string): boolean {
  return constantTimeEqual(challengeTokenHash, sha256OfText(token));
}

/** A browser must not read the text of a stranger as a page. */
function challengeAnswer(type: string, body: string): WebhookAnswer {
  const headers = { "content-type": type, "x-content-type-options": "nosniff", "cache-control": "no-store" };
  return { status: 200, headers, body, isChallenge: true };
}
