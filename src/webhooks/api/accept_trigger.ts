import { acceptedAnswer, AcceptOnce, type AcceptOnceOptions } from "./idempotency.ts";
import { bodyHash } from "../../base/exact_json.ts";
import { jsonObjectOf } from "./field_reader.ts";
import { notFound, refusal, UNAUTHORIZED, unavailable, WebhookRefusal } from "./problem.ts";
import type { AuditEntry, Trigger, WorkflowVersion } from "../model/records.ts";
import { CONTINUE, type TriggerCall, type WebhookAnswer } from "./calls.ts";
import { constantTimeEqual } from "../model/signature.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { checkLimit, limitDescriptors } from "./trigger_limit.ts";
import { acceptAuditedExecution, acceptExecution, type NewIdempotency } from "../store/accept.ts";
import { findTriggerKey } from "../store/triggers.ts";

/** What triggers are accepted with. */
export interface TriggerAcceptorOptions extends AcceptOnceOptions {
  /** The current workflows. */
  readonly workflows: { current(name: string): { readonly version: WorkflowVersion } | undefined };
  /** Asks the decision service. */
  readonly limit: LimitCall;
  /** Called when an execution was created. */
  readonly onAccepted: () => void;
}

/** A call of a trigger by someone who may. */
export interface AdmittedCall {
  /** Of good syntax; absent for none. */
  readonly idempotencyKey: string | undefined;
  readonly body: string;
  /** The entry of the audit log about an execution that the administration starts. */
  readonly audit?: ((executionId: string) => AuditEntry) | undefined;
}

/** Accepts calls of triggers. Refusals are thrown as `WebhookRefusal`. */
export class TriggerAcceptor {
  readonly #options: TriggerAcceptorOptions;
  readonly #once: AcceptOnce;

  constructor(options: TriggerAcceptorOptions) {
    this.#options = options;
    this.#once = new AcceptOnce(options);
  }

  /** Answers after the commit. */
  async accept(call: TriggerCall): Promise<WebhookAnswer> {
    const trigger = await this.#admit(call);
    const { idempotencyKey, body } = call;
    if (body === undefined) return call.refusal ?? CONTINUE;
    return await this.start(trigger, { idempotencyKey, body });
  }

  /** Starts the workflow of a trigger for a caller who may; answers after the commit. */
  async start(trigger: Trigger, { idempotencyKey: key, body, audit }: AdmittedCall): Promise<WebhookAnswer> {
    requireEnabled(trigger);
    if (key === undefined && trigger.requireIdempotencyKey) {
      const detail = "Cannot accept the call: this trigger requires an Idempotency-Key";
      throw refusal("idempotency_key_required", detail, { field: "Idempotency-Key" });
    }
    const { hashing, descriptors } = readInput({ body, key }, trigger);
    const bodyHash = await hashing;
    const executionId = this.#options.newId();
    const isRejected = trigger.onBodyMismatch === "reject";
    const accepted = await this.#once.accept({
      idempotency: key === undefined ? undefined : { scope: `trigger:${trigger.id}`, key, bodyHash },
      resultId: executionId,
      create: async (idempotency) => {
        this.#options.bounds.admit();
        await checkLimit(trigger, descriptors, this.#options.limit);
        return await this.#create(trigger, { executionId, body, idempotency, audit: audit?.(executionId) });
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
    return acceptedAnswer({ executionId: accepted.resultId }, accepted);
  }

  /** The enabled trigger of a known key, on its own path. */
  async #admit({ name, keyHash }: TriggerCall): Promise<Trigger> {
    const trigger = (await this.#options.store.read(findTriggerKey, keyHash))?.trigger;
    if (trigger === undefined || !trigger.keys.some(({ hash }) => constantTimeEqual(hash, keyHash))) {
      throw new WebhookRefusal(UNAUTHORIZED);
    }
    if (trigger.name !== name) throw notFound("this trigger");
    requireEnabled(trigger);
    return trigger;
  }

  async #create(
    trigger: Trigger,
    { audit, ...call }: {
      readonly executionId: string;
      readonly body: string;
      readonly idempotency: NewIdempotency | undefined;
      readonly audit: AuditEntry | undefined;
    },
  ) {
    const { store, workflows, clock, onAccepted } = this.#options;
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
      input: call.body,
    };
    const options = { now: clock.now(), idempotency: call.idempotency };
    const acceptance = audit === undefined
      ? await store.write(acceptExecution, execution, options)
      : await store.write(acceptAuditedExecution, execution, { ...options, audit });
    if (acceptance.kind === "replayed") return acceptance;
    onAccepted();
    return { kind: "new", value: 0 } as const;
  }
}

function requireEnabled({ enabled }: Trigger): void {
  if (!enabled) throw refusal("trigger_disabled", "Cannot call the trigger: it is disabled");
}

/** Reads only what is needed of a body: its value takes many times the memory of its text, and many calls may wait. */
function readInput({ body, key }: { body: string; key: string | undefined }, { limit }: Trigger) {
  const input = jsonObjectOf(body);
  return {
    hashing: key === undefined ? "" : bodyHash(input),
    descriptors: limit === undefined ? [] : limitDescriptors(limit, input),
  };
}
