import { acceptedAnswer, AcceptOnce, type AcceptOnceOptions } from "./idempotency.ts";
import { bodyText } from "../../base/body_text.ts";
import { bodyHash, byteLength, type JsonObject } from "../../base/exact_json.ts";
import { TurnMemo } from "../../base/turn.ts";
import { jsonObjectOf } from "./field_reader.ts";
import {
  bodyProblem,
  idempotencyKeyRefusal,
  notFound,
  refusal,
  repeatedKeyProblem,
  UNAUTHORIZED,
  unavailable,
  WebhookRefusal,
  WRONG_TYPE,
} from "./problem.ts";
import { callConditionHolds } from "../model/call_condition.ts";
import { bodyKindOf, inputOfBody, isKindAccepted, passedHeaders } from "./call_input.ts";
import type { AuditEntry, Execution, Trigger, WorkflowVersion } from "../model/records.ts";
import {
  CONTINUE,
  type SignedTriggerCall,
  type TriggerCall,
  type TriggerCheck,
  type WebhookAnswer,
} from "./calls.ts";
import { constantTimeEqual } from "../model/signature.ts";
import type { CallHeaders } from "../model/signature_header.ts";
import { deliveryIdOf, eventOf, idHeadersOf, isPing } from "../model/signed_delivery.ts";
import { snsInputOf, type SnsMessage } from "../model/sns_message.ts";
import type { SignatureRefusal } from "../model/trigger_verification.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { Challenges } from "./challenges.ts";
import { SignedCalls, type SignedCallsOptions } from "./signed_calls.ts";
import { checkLimit, limitDescriptors } from "./trigger_limit.ts";
import {
  type Acceptance,
  acceptAuditedExecution,
  acceptExecution,
  type NewExecution,
  type WriteExecution,
} from "../store/operations/accept.ts";
import type { NewIdempotency } from "../store/operations/accept_keys.ts";
import { findTriggerKey, type KnownTriggerKey } from "../store/operations/triggers.ts";

/** Options of `TriggerAcceptor`. */
export interface TriggerAcceptorOptions extends AcceptOnceOptions, SignedCallsOptions {
  /** The current workflows. */
  readonly workflows: { current(name: string): { readonly version: WorkflowVersion } | undefined };
  /** Asks the decision service. */
  readonly limit: LimitCall;
  /** Largest input; any when absent. */
  readonly maxBodyBytes?: number | undefined;
  /** Lets a new execution be written, with a claim if it begins immediately. */
  readonly acceptExecution: (
    execution: NewExecution,
    write: WriteExecution,
  ) => Promise<Acceptance<Execution>>;
}

/** A call of a trigger by someone who may. */
interface AdmittedCall {
  /** Of good syntax; absent for none. */
  readonly idempotencyKey: string | undefined;
  readonly body: string;
  /** The entry of the audit log about an execution that the administration starts. */
  readonly audit?: ((executionId: string) => AuditEntry) | undefined;
  /** The kind of event that the provider named. */
  readonly event?: string | undefined;
  readonly headers?: CallHeaders | undefined;
}

/** An admitted call whose key may be a part of the input. */
interface KeyedCall {
  readonly body: string;
  readonly audit?: AdmittedCall["audit"];
  readonly event?: string | undefined;
  readonly headers?: CallHeaders | undefined;
  readonly keyOf: (input: JsonObject) => string | undefined;
}

/** Accepts calls of triggers. Refusals are thrown as `WebhookRefusal`. */
export class TriggerAcceptor {
  readonly #options: TriggerAcceptorOptions;
  readonly #once: AcceptOnce;
  readonly #signed: SignedCalls;
  readonly #challenges: Challenges;
  /** By the hash of the key. */
  readonly #finding = new TurnMemo<string, Promise<KnownTriggerKey | undefined>>();

  constructor(options: TriggerAcceptorOptions) {
    this.#options = options;
    this.#once = new AcceptOnce(options);
    this.#signed = new SignedCalls(options);
    this.#challenges = new Challenges(options);
  }

  /** Numbers of refused signed calls, by reason. */
  get signatureRefusals(): ReadonlyMap<SignatureRefusal, number> {
    return this.#signed.refusals;
  }

  /** Answers a call with a key, after the commit. */
  async accept(call: TriggerCall): Promise<WebhookAnswer> {
    const trigger = await this.#admit(call);
    const { idempotencyKey, body, contentType, headers } = call;
    const kind = acceptedKind(trigger, contentType ?? "application/json");
    if (body === undefined) return call.refusal ?? CONTINUE;
    const input = this.#inputOf(trigger, body, kind);
    return await this.start(trigger, { idempotencyKey, body: input, headers: new Map(headers) });
  }

  /** Starts the workflow of a trigger for a caller who may; answers after the commit. */
  async start(trigger: Trigger, { idempotencyKey, ...call }: AdmittedCall): Promise<WebhookAnswer> {
    requireEnabled(trigger);
    requireKey(idempotencyKey, trigger);
    return await this.#run(trigger, { ...call, keyOf: () => idempotencyKey });
  }

  /** Answers the check of a URL. */
  async check(call: TriggerCheck): Promise<WebhookAnswer> {
    return await this.#challenges.check(call);
  }

  /** Answers a signed call, after the commit. */
  async acceptSigned(call: SignedTriggerCall): Promise<WebhookAnswer> {
    const answer = await this.#challenges.unsigned(call);
    if (answer !== undefined) return answer;
    const headers = new Map(call.headers);
    const { trigger, message } = await this.#signed.verify(call, headers);
    requireEnabled(trigger);
    if (message !== undefined) return await this.#acceptMessage(trigger, { message, headers, call });
    const { repeated = [] } = call;
    const kind = acceptedKind(
      trigger,
      repeated.includes("content-type") ? undefined : headers.get("content-type"),
    );
    const keyHeaders = [...idHeadersOf(trigger.verify), "idempotency-key"];
    const repeatedKey = repeated.find((name) => keyHeaders.includes(name));
    if (repeatedKey !== undefined) throw new WebhookRefusal(repeatedKeyProblem(repeatedKey));
    const body = this.#inputOf(trigger, textOf(call, headers), kind);
    if (isPing(trigger.verify, headers)) {
      jsonObjectOf(body);
      return { ...PING_ANSWER, status: trigger.answer ?? PING_ANSWER.status };
    }
    if (trigger.challenge !== undefined) {
      const secretOf = () => this.#signed.secretOf(trigger, call, headers);
      const checked = { body: jsonObjectOf(body), requestId: call.requestId, secretOf };
      const answer = await this.#challenges.signed(trigger, checked);
      if (answer !== undefined) return answer;
    }
    const keyOf = (input: JsonObject) => {
      // What the provider signed must not be replaced by a header that anyone on the way can add.
      const id = deliveryIdOf(trigger.verify, headers, input);
      const key = id ?? headers.get("idempotency-key");
      const name = id === undefined ? undefined : "identifier of the delivery";
      const refused = idempotencyKeyRefusal(key, name);
      if (refused !== undefined) throw refused;
      requireKey(key, trigger);
      return key;
    };
    return await this.#run(trigger, { body, event: eventOf(trigger.verify, headers), headers, keyOf });
  }

  /** Answers a verified message of Amazon SNS, whose media type does not matter. */
  async #acceptMessage(
    trigger: Trigger,
    { message, headers, call: { requestId } }: {
      readonly message: SnsMessage;
      readonly headers: CallHeaders;
      readonly call: SignedTriggerCall;
    },
  ): Promise<WebhookAnswer> {
    if (message.type !== "Notification") return await this.#signed.sns.answer(trigger, message, requestId);
    return await this.#run(trigger, { body: snsInputOf(message), headers, keyOf: () => message.id });
  }

  /** Starts an execution again; neither the limit nor the conditions of its trigger apply, which may be deleted. */
  async rerun(
    origin: Execution,
    { idempotencyKey: key, audit }: Pick<AdmittedCall, "idempotencyKey" | "audit">,
  ): Promise<WebhookAnswer> {
    const { id: rerunOf, workflow, triggerId, event, headers, input: body } = origin;
    const executionId = this.#options.newId();
    const accepted = await this.#once.accept({
      idempotency: key === undefined ? undefined : { scope: `execution:${rerunOf}`, key, bodyHash: "" },
      resultId: executionId,
      isCounted: false,
      create: async (idempotency) => {
        this.#options.bounds.admit();
        const started = { executionId, body, event, headers, rerunOf, idempotency };
        const entry = audit?.(executionId);
        return await this.#create({ workflow, id: triggerId }, { ...started, audit: entry });
      },
    });
    return acceptedAnswer({ executionId: accepted.resultId }, accepted);
  }

  async #run(trigger: Trigger, call: KeyedCall): Promise<WebhookAnswer> {
    const { body, event, audit } = call;
    const headers = passedHeaders(trigger, call.headers);
    const { key, hashing, descriptors, isWanted } = readInput(call, trigger, headers);
    if (!isWanted) return FILTERED_ANSWER;
    const bodyHash = await hashing;
    const executionId = this.#options.newId();
    const isRejected = trigger.onBodyMismatch === "reject";
    const accepted = await this.#once.accept({
      idempotency: key === undefined ? undefined : { scope: `trigger:${trigger.id}`, key, bodyHash },
      resultId: executionId,
      isCounted: trigger.limit !== undefined,
      create: async (idempotency) => {
        this.#options.bounds.admit();
        await checkLimit(trigger, descriptors, this.#options.limit);
        const entry = audit?.(executionId);
        return await this.#create(trigger, { executionId, body, event, headers, idempotency, audit: entry });
      },
      mismatch: (resultId) => ({
        actor: audit?.(resultId).actor ?? `trigger:${trigger.name}`,
        action: "trigger.body_mismatch",
        object: `execution:${resultId}`,
        details: { triggerId: trigger.id, rejected: isRejected },
      }),
    });
    if (accepted.isMismatch && isRejected) {
      const detail = "Cannot accept the call: its Idempotency-Key was used with another body";
      throw refusal("body_mismatch", detail, { field: "body" });
    }
    // Only senders need another status: an administrator who tests the call does not.
    const status = audit === undefined ? trigger.answer : undefined;
    return acceptedAnswer({ executionId: accepted.resultId }, accepted, status);
  }

  /** The input of a body, which may be longer as JSON. */
  #inputOf({ accept }: Trigger, body: string, kind: "json" | "form" | "text"): string {
    const { maxBodyBytes = Infinity } = this.#options;
    const input = inputOfBody(body, kind, accept);
    if (input.length === body.length || byteLength(input) <= maxBodyBytes) return input;
    const detail = `Cannot read the body: larger than ${maxBodyBytes} bytes as JSON`;
    throw refusal("too_large", detail, { field: "body" });
  }

  /** The enabled trigger of a known key, on its own path. */
  async #admit({ name, keyHash }: TriggerCall): Promise<Trigger> {
    const trigger = (await this.#find(keyHash))?.trigger;
    if (trigger === undefined || !trigger.keys.some(({ hash }) => constantTimeEqual(hash, keyHash))) {
      throw new WebhookRefusal(UNAUTHORIZED);
    }
    if (trigger.name !== name) throw notFound("this trigger");
    requireEnabled(trigger);
    return trigger;
  }

  /** Calls of one turn of the event loop that show the same key share a read. */
  #find(keyHash: string): Promise<KnownTriggerKey | undefined> {
    return this.#finding.get(keyHash, () => this.#options.store.read(findTriggerKey, keyHash));
  }

  async #create(
    trigger: Pick<Trigger, "id" | "workflow">,
    { audit, ...call }: {
      readonly executionId: string;
      readonly body: string;
      readonly event: string | undefined;
      readonly headers: string | undefined;
      readonly rerunOf?: string;
      readonly idempotency: NewIdempotency | undefined;
      readonly audit: AuditEntry | undefined;
    },
  ) {
    const { store, workflows, clock } = this.#options;
    const version = workflows.current(trigger.workflow)?.version;
    if (version === undefined) {
      const detail = `Cannot start workflow "${trigger.workflow}": it has no valid file`;
      throw new WebhookRefusal(unavailable("workflow_unavailable", detail));
    }
    const execution = {
      id: call.executionId,
      workflow: trigger.workflow,
      versionId: version.id,
      text: version.text,
      triggerId: trigger.id,
      event: call.event,
      rerunOf: call.rerunOf,
      headers: call.headers,
      input: call.body,
    };
    const options = { now: clock.now(), idempotency: call.idempotency };
    const write: WriteExecution = (execution) =>
      audit === undefined
        ? store.write(acceptExecution, execution, options)
        : store.write(acceptAuditedExecution, execution, { ...options, audit });
    const acceptance = await this.#options.acceptExecution(execution, write);
    return acceptance.kind === "replayed" ? acceptance : { kind: "new", value: 0 } as const;
  }
}

/** Nothing starts: the provider only tests the connection. */
const PING_ANSWER: WebhookAnswer = {
  status: 202,
  headers: { "content-type": "application/json" },
  body: "{}",
};

/** The condition of the trigger does not hold. The key is not used up: a changed condition may let the call pass. */
const FILTERED_ANSWER: WebhookAnswer = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: '{"filtered":true}',
};

/** The kind of a body of this type; throws the refusal of one that the trigger does not accept. */
function acceptedKind({ accept }: Trigger, contentType: string | undefined): "json" | "form" | "text" {
  const kind = bodyKindOf(contentType);
  if (kind !== undefined && isKindAccepted(kind, accept)) return kind;
  if (accept === undefined) throw new WebhookRefusal(WRONG_TYPE);
  const detail = `Cannot read the body: the trigger accepts ${accept.join(", ")}`;
  throw refusal("unsupported_media_type", detail, { field: "Content-Type" });
}

function requireEnabled({ enabled }: Trigger): void {
  if (!enabled) throw refusal("trigger_disabled", "Cannot call the trigger: it is disabled");
}

function requireKey(key: string | undefined, { requireIdempotencyKey }: Trigger): void {
  if (key !== undefined || !requireIdempotencyKey) return;
  const detail = "Cannot accept the call: this trigger requires an Idempotency-Key";
  throw refusal("idempotency_key_required", detail, { field: "Idempotency-Key" });
}

/** The signature was over the bytes as they were sent; what is stored is the decoded text. */
function textOf({ body, maxBodyBytes: maxBytes }: SignedTriggerCall, headers: CallHeaders): string {
  const contentEncoding = headers.get("content-encoding");
  const text = bodyText(body, { contentEncoding, contentType: headers.get("content-type"), maxBytes });
  if (typeof text === "string") return text;
  throw new WebhookRefusal(bodyProblem(text));
}

/** Reads only what is needed of a body: its value takes many times the memory of its text, and many calls may wait. */
function readInput(
  { body, event, keyOf }: KeyedCall,
  { limit, when }: Trigger,
  headers: string | undefined,
) {
  const input = jsonObjectOf(body);
  const key = keyOf(input);
  return {
    key,
    isWanted: when === undefined || callConditionHolds(when, { input, event, headers }),
    hashing: key === undefined ? "" : bodyHash(input),
    descriptors: limit === undefined ? [] : limitDescriptors(limit, input),
  };
}
