import { ADMIN_NAME } from "./administrator.ts";
import { acceptedAnswer, AcceptOnce, type AcceptOnceOptions } from "./idempotency.ts";
import { eventBody, isReservedKind, matchesKind, RESERVED_PREFIXES } from "../model/event.ts";
import { POSTED_EVENT } from "../resources/event.ts";
import { jsonObjectOf, readFields } from "./field_reader.ts";
import { bodyHash } from "../../base/exact_json.ts";
import { memberText } from "../../base/json_text.ts";
import { refusal, UNAUTHORIZED, WebhookRefusal } from "./problem.ts";
import type { EventKey, NewEvent } from "../model/records.ts";
import { CONTINUE, type EventCall, type WebhookAnswer } from "./calls.ts";
import { constantTimeEqual } from "../model/signature.ts";
import { acceptEvent } from "../store/operations/accept.ts";
import { findEventKey } from "../store/operations/events.ts";

/** Options of `EventAcceptor`. */
interface EventAcceptorOptions extends AcceptOnceOptions {
  /** Called with the endpoints for which deliveries were created. */
  readonly onAccepted: (endpointIds: readonly string[]) => void;
}

/** Accepts events of other systems. Refusals are thrown as `WebhookRefusal`. */
export class EventAcceptor {
  readonly #options: EventAcceptorOptions;
  readonly #once: AcceptOnce;

  constructor(options: EventAcceptorOptions) {
    this.#options = options;
    this.#once = new AcceptOnce(options);
  }

  /** Answers after the commit. */
  async accept(call: EventCall): Promise<WebhookAnswer> {
    const eventKey = await this.#admit(call);
    if (call.body === undefined) return call.refusal ?? CONTINUE;
    const object = jsonObjectOf(call.body);
    const { event: kind } = readFields(object, POSTED_EVENT);
    const body = eventBody(kind, memberText(call.body, "data"));
    checkKind(kind, eventKey);
    const { store, clock, newId, bounds, onAccepted } = this.#options;
    const event: NewEvent = { id: newId(), kind, body };
    const { scope, actor } = identityOf(call, eventKey);
    const { idempotencyKey: key } = call;
    const accepted = await this.#once.accept({
      idempotency: key === undefined ? undefined : { scope, key, bodyHash: await bodyHash(object) },
      resultId: event.id,
      isCounted: false,
      create: async (idempotency) => {
        await bounds.admitEvent(event);
        const acceptance = await store.write(acceptEvent, event, {
          now: clock.now(),
          idempotency,
        });
        if (acceptance.kind === "replayed") return acceptance;
        const { endpointIds } = acceptance.value;
        onAccepted(endpointIds);
        return { kind: "new", value: endpointIds.length };
      },
      mismatch: (resultId) => ({
        actor,
        action: "event.body_mismatch",
        object: `event:${resultId}`,
        details: {},
      }),
    });
    const { resultId, deliveries } = accepted;
    return acceptedAnswer({ id: resultId, deliveries }, accepted);
  }

  /** The event key of a caller; nothing for the administration. */
  async #admit({ keyHash }: EventCall): Promise<EventKey | undefined> {
    if (keyHash === undefined) return undefined;
    const key = await this.#options.store.read(findEventKey, keyHash);
    if (key === undefined || !constantTimeEqual(key.hash, keyHash)) throw new WebhookRefusal(UNAUTHORIZED);
    return key;
  }
}

/** The scope of the idempotency keys of a caller, and its name in the audit log. */
function identityOf({ administrator = ADMIN_NAME }: EventCall, eventKey: EventKey | undefined) {
  if (eventKey !== undefined) {
    return { scope: `event-key:${eventKey.id}`, actor: `event-key:${eventKey.name}` };
  }
  // The scope of ADMIN_TOKEN is older than the names.
  const scope = administrator === ADMIN_NAME ? ADMIN_NAME : `admin:${administrator}`;
  return { scope, actor: administrator };
}

function checkKind(kind: string, eventKey: EventKey | undefined): void {
  if (isReservedKind(kind)) {
    const prefixes = RESERVED_PREFIXES.map((prefix) => `"${prefix}"`).join(", ");
    throw forbidden(
      "reserved_kind",
      `only the service itself reports kinds that begin with one of ${prefixes}, in any letter case`,
    );
  }
  if (eventKey !== undefined && !matchesKind(eventKey.kinds, kind)) {
    throw forbidden("kind_not_allowed", "the event key does not allow this kind");
  }
}

function forbidden(code: "reserved_kind" | "kind_not_allowed", state: string): WebhookRefusal {
  return refusal(code, `Cannot accept the event: ${state}`, { field: "event" });
}
