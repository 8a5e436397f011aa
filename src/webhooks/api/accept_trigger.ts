import type { Clock } from "../../base/clock.ts";
import { type Accepted, AcceptOnce } from "./accept_once.ts";
import { jsonObjectOf } from "./json_body.ts";
import { bodyHash } from "../../base/exact_json.ts";
import { notFound, unavailable, WebhookRefusal } from "./problem.ts";
import type { Trigger, WorkflowVersion } from "../model/records.ts";
import type { TriggerCall, TriggerCaller, WebhookAnswer } from "./calls.ts";
import { constantTimeEqual } from "../model/signature.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { limitDescriptors, triggerLimit } from "./trigger_limit.ts";
import { acceptExecution, type NewIdempotency } from "../store/accept.ts";
import { addAudit } from "../store/audit_log.ts";
import type { WebhookStore } from "../store/store.ts";
import { findTriggerKey } from "../store/triggers.ts";

/** What triggers are accepted with. */
export interface TriggerAcceptorOptions {
  readonly store: WebhookStore;
  /** The workflow files that are in force. */
  readonly workflows: { current(name: string): { readonly version: WorkflowVersion } | undefined };
  /** Asks the decision service. */
  readonly limit: LimitCall;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Called when an execution was created. */
  readonly onAccepted: () => void;
}

/** Takes in calls of triggers. Refusals are thrown as `WebhookRefusal`. */
export class TriggerAcceptor {
  readonly #options: TriggerAcceptorOptions;
  readonly #once: AcceptOnce;

  constructor(options: TriggerAcceptorOptions) {
    this.#options = options;
    this.#once = new AcceptOnce(options);
  }

  /** The trigger of a caller whose key is known, on its own path, and that is enabled. */
  async admit({ name, keyHash }: TriggerCaller): Promise<Trigger> {
    const trigger = (await this.#options.store.read(findTriggerKey, keyHash))?.trigger;
    if (trigger === undefined || !trigger.keys.some(({ hash }) => constantTimeEqual(hash, keyHash))) {
      throw unauthorized();
    }
    if (trigger.name !== name) throw notFound("this trigger");
    if (trigger.enabled) return trigger;
    throw new WebhookRefusal({
      status: 403,
      code: "trigger_disabled",
      detail: "Cannot call the trigger: it is disabled",
    });
  }

  /** Answers after the commit. */
  async accept(call: TriggerCall): Promise<WebhookAnswer> {
    const trigger = await this.admit(call);
    const { idempotencyKey: key } = call;
    if (key === undefined && trigger.requireIdempotencyKey) throw keyRequired();
    const { hashing, descriptors } = readInput(call, trigger);
    const hash = await hashing;
    const idempotency = key === undefined
      ? undefined
      : { scope: `trigger:${trigger.id}`, key, bodyHash: hash };
    const executionId = this.#options.newId();
    const accepted = await this.#once.accept({
      idempotency,
      resultId: executionId,
      create: async (idempotency) => {
        await this.#checkLimit(trigger, descriptors);
        return await this.#create(trigger, { executionId, body: call.body, idempotency });
      },
    });
    const mismatch = accepted.isReplay && accepted.bodyHash !== hash;
    if (mismatch) await this.#noteMismatch(trigger, accepted);
    return acceptedAnswer({ executionId: accepted.resultId }, { isReplay: accepted.isReplay, mismatch });
  }

  async #checkLimit(trigger: Trigger, descriptors: ReturnType<typeof limitDescriptors>): Promise<void> {
    const { limit, onLimitError } = trigger;
    if (limit === undefined) return;
    await triggerLimit({ limit, onLimitError, descriptors, ask: this.#options.limit });
  }

  async #create(
    trigger: Trigger,
    call: { executionId: string; body: string; idempotency: NewIdempotency | undefined },
  ) {
    const { store, workflows, clock, onAccepted } = this.#options;
    const version = workflows.current(trigger.workflow)?.version;
    if (version === undefined) {
      const detail =
        `Cannot start workflow "${trigger.workflow}": there is no such file, or none that is right`;
      throw new WebhookRefusal(unavailable("workflow_unavailable", detail));
    }
    const execution = {
      id: call.executionId,
      workflow: trigger.workflow,
      versionId: version.id,
      text: version.text,
      triggerId: trigger.id,
      input: call.body,
    };
    const options = { now: clock.now(), idempotency: call.idempotency };
    const acceptance = await store.write(acceptExecution, execution, options);
    if (acceptance.kind === "replayed") return acceptance;
    onAccepted();
    return { kind: "new", value: 0 } as const;
  }

  async #noteMismatch(trigger: Trigger, { resultId }: Accepted): Promise<void> {
    const { store, clock, newId } = this.#options;
    await store.write(addAudit, {
      id: newId(),
      at: clock.now(),
      actor: `trigger:${trigger.name}`,
      action: "trigger.body_mismatch",
      object: `execution:${resultId}`,
      details: { triggerId: trigger.id, rejected: trigger.onBodyMismatch === "reject" },
    });
    if (trigger.onBodyMismatch === "reject") throw bodyMismatch();
  }
}

/** All that is needed of the value of a body: it takes many times the memory of its text, and many calls may wait. */
function readInput({ body, idempotencyKey }: TriggerCall, { limit }: Trigger) {
  const input = jsonObjectOf(body);
  return {
    hashing: idempotencyKey === undefined ? "" : bodyHash(input),
    descriptors: limit === undefined ? [] : limitDescriptors(limit, input),
  };
}

/** 202 for what was accepted, now or before. */
export function acceptedAnswer(
  body: Readonly<Record<string, unknown>>,
  { isReplay, mismatch }: { readonly isReplay: boolean; readonly mismatch: boolean },
): WebhookAnswer {
  const headers = {
    "content-type": "application/json",
    ...(isReplay ? { "idempotency-replayed": "true" } : {}),
    ...(mismatch ? { "idempotency-body-mismatch": "true" } : {}),
  };
  return { status: 202, headers, body: JSON.stringify(body) };
}

/** The same for everybody whose key is not known. */
export function unauthorized(): WebhookRefusal {
  return new WebhookRefusal({
    status: 401,
    code: "unauthorized",
    detail: "Cannot let this call in: a bearer token that is known is wanted",
    headers: { "www-authenticate": "Bearer" },
  });
}

function keyRequired(): WebhookRefusal {
  return new WebhookRefusal({
    status: 400,
    code: "idempotency_key_required",
    field: "Idempotency-Key",
    detail: "Cannot accept the call: this trigger wants an Idempotency-Key",
  });
}

function bodyMismatch(): WebhookRefusal {
  return new WebhookRefusal({
    status: 422,
    code: "body_mismatch",
    field: "body",
    detail: "Cannot accept the call: its Idempotency-Key was used with another body",
  });
}
