import type { Clock } from "../../base/clock.ts";
import { AcceptOnce } from "./accept_once.ts";
import { acceptedAnswer, unauthorized } from "./accept_trigger.ts";
import { eventBody, eventKindProblem, isReservedKind, matchesKind, RESERVED_PREFIX } from "../model/event.ts";
import { FieldReader } from "./field_reader.ts";
import { jsonObjectOf } from "./json_body.ts";
import { bodyHash, stringifyJson } from "../../base/exact_json.ts";
import { invalidField, WebhookRefusal } from "./problem.ts";
import type { EventKey } from "../model/records.ts";
import type { EventCall, EventCaller, WebhookAnswer } from "./calls.ts";
import { constantTimeEqual } from "../model/signature.ts";
import { acceptEvent } from "../store/accept.ts";
import { addAudit } from "../store/audit_log.ts";
import { findEventKey } from "../store/events.ts";
import type { WebhookStore } from "../store/store.ts";

/** What events are accepted with. */
export interface EventAcceptorOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Told for which endpoints deliveries were created. */
  readonly onAccepted: (endpointIds: readonly string[]) => void;
}

/** Takes in events that others report. Refusals are thrown as `WebhookRefusal`. */
export class EventAcceptor {
  readonly #options: EventAcceptorOptions;
  readonly #once: AcceptOnce;

  constructor(options: EventAcceptorOptions) {
    this.#options = options;
    this.#once = new AcceptOnce(options);
  }

  /** The event key of a caller; nothing for the administration. */
  async admit({ keyHash }: EventCaller): Promise<EventKey | undefined> {
    if (keyHash === undefined) return undefined;
    const key = await this.#options.store.read(findEventKey, keyHash);
    if (key === undefined || !constantTimeEqual(key.hash, keyHash)) throw unauthorized();
    return key;
  }

  /** Answers after the commit. */
  async accept(call: EventCall): Promise<WebhookAnswer> {
    const eventKey = await this.admit(call);
    const object = jsonObjectOf(call.body);
    const fields = new FieldReader(object, ["event", "data"]);
    const kind = fields.text("event");
    const problem = eventKindProblem(kind);
    if (problem !== undefined) throw invalidField("event", problem);
    const body = eventBody(kind, stringifyJson(fields.object("data")));
    checkKind(kind, eventKey);
    const { store, clock, newId, onAccepted } = this.#options;
    const id = newId();
    const scope = eventKey === undefined ? "admin" : `event-key:${eventKey.id}`;
    const { idempotencyKey: key } = call;
    const hash = key === undefined ? "" : await bodyHash(object);
    const accepted = await this.#once.accept({
      idempotency: key === undefined ? undefined : { scope, key, bodyHash: hash },
      resultId: id,
      create: async (idempotency) => {
        const acceptance = await store.write(acceptEvent, { id, kind, body }, {
          now: clock.now(),
          idempotency,
        });
        if (acceptance.kind === "replayed") return acceptance;
        const { endpointIds } = acceptance.value;
        onAccepted(endpointIds);
        return { kind: "new", value: endpointIds.length };
      },
    });
    const { resultId, deliveries, isReplay } = accepted;
    const mismatch = isReplay && accepted.bodyHash !== hash;
    if (mismatch) await this.#noteMismatch(resultId, eventKey);
    return acceptedAnswer({ id: resultId, deliveries }, { isReplay, mismatch });
  }

  async #noteMismatch(eventId: string, eventKey: EventKey | undefined): Promise<void> {
    const { store, clock, newId } = this.#options;
    await store.write(addAudit, {
      id: newId(),
      at: clock.now(),
      actor: eventKey === undefined ? "admin" : `event-key:${eventKey.name}`,
      action: "event.body_mismatch",
      object: `event:${eventId}`,
      details: {},
    });
  }
}

function checkKind(kind: string, eventKey: EventKey | undefined): void {
  if (isReservedKind(kind)) {
    throw forbidden(
      "reserved_kind",
      `kinds that begin with "${RESERVED_PREFIX}" are reported by this service alone`,
    );
  }
  if (eventKey !== undefined && !matchesKind(eventKey.kinds, kind)) {
    throw forbidden("kind_not_allowed", "the event key does not allow this kind");
  }
}

function forbidden(code: string, state: string): WebhookRefusal {
  return new WebhookRefusal({ status: 403, code, field: "event", detail: `Cannot take the event: ${state}` });
}
