import { sha256OfText } from "../../base/byte_text.ts";
import { memberText } from "../../base/json_text.ts";
import { isCredentialHeader } from "./call_input.ts";
import { conditionHeaders } from "../model/call_condition.ts";
import { newEndpointSecret, newTriggerKey } from "../model/keys.ts";
import type {
  StoredKey,
  Trigger,
  TriggerEdit,
  TriggerSecret,
  TriggerVerification,
} from "../model/records.ts";
import { schemeOf } from "../model/signature_scheme.ts";
import { eventOf, weaknessOf } from "../model/signed_delivery.ts";
import { newValues } from "../resources/field.ts";
import {
  CHALLENGE_TOKEN,
  NEW_TRIGGER,
  TRIGGER_CALL,
  TRIGGER_CHANGE,
  TRIGGER_FIELDS,
  TRIGGER_KEY,
  TRIGGER_SECRET,
  TRIGGERS,
} from "../resources/trigger.ts";
import { VERIFICATION_SECRET } from "../resources/trigger_verification.ts";
import * as triggers from "../store/operations/triggers.ts";
import { wholeId } from "./id_prefix.ts";
import { lister } from "./list_query.ts";
import { found, idempotencyKeyRefusal, invalidField, notFound, refusal } from "./problem.ts";
import { adminAudit, jsonAnswer, NO_CONTENT, type RoutedCall, type RoutesOf, shownRecord } from "./route.ts";
import type { TRIGGER_OPERATIONS } from "./trigger_operations.ts";
import { changedVerification, checkedSecret, sentVerification } from "./trigger_verification.ts";

/** `/triggers`. */
export const TRIGGER_ROUTES: RoutesOf<typeof TRIGGER_OPERATIONS> = {
  "POST /triggers": createTrigger,
  "GET /triggers": lister(TRIGGERS, triggers.listTriggers, shown),
  "GET /triggers/:id": getTrigger,
  "PATCH /triggers/:id": editTrigger,
  "DELETE /triggers/:id": deleteTrigger,
  "POST /triggers/:id/call": callTrigger,
  "POST /triggers/:id/rotate": rotate,
  "DELETE /triggers/:id/keys/:keyId": deleteKey,
  "DELETE /triggers/:id/secrets/:secretId": deleteSecret,
};

async function createTrigger(call: RoutedCall) {
  const { verify, challengeToken, ...sent } = await call.fields(NEW_TRIGGER);
  const { name, workflow } = sent;
  const { shownOnce, ...credentials } = await newCredentials(call, sentVerification(verify, call));
  const challengeTokenHash = checkedChallenge(sent, challengeToken, credentials);
  checkHeaders({ ...sent, verify: credentials.verify });
  const now = call.clock.now();
  const trigger: Trigger = {
    ...newValues(TRIGGER_FIELDS, sent),
    challengeTokenHash,
    id: call.newId(),
    createdAt: now,
    updatedAt: now,
    ...credentials,
  };
  const scheme = trigger.verify?.scheme;
  const details = { name, workflow, ...(scheme === undefined ? {} : { scheme }) };
  const audit = adminAudit(call, "trigger.created", `trigger:${trigger.id}`, details);
  if (!await call.store.write(triggers.createTrigger, trigger, audit)) {
    throw refusal("name_taken", `Cannot create trigger "${name}": the name is taken`, { field: "name" });
  }
  return jsonAnswer(201, { ...shown(trigger), ...shownOnce });
}

async function getTrigger(call: RoutedCall) {
  return triggerAnswer(await triggerOf(call));
}

async function editTrigger(call: RoutedCall) {
  const { id, store, clock } = call;
  const { challengeToken, ...sent } = await call.fields(TRIGGER_CHANGE);
  const verify = changedVerification(sent.verify, call);
  if (verify !== undefined) await checkScheme(verify, call);
  const isChallengeSent = challengeToken !== undefined || typeof sent.challenge === "string";
  const isHeaderSent = sent.passHeaders !== undefined || typeof sent.when === "string";
  const isRead = isChallengeSent || isHeaderSent || verify !== undefined;
  const before = isRead ? await triggerOf(call) : undefined;
  const challengeTokenHash = isChallengeSent && before !== undefined
    ? checkedChallenge(sent, challengeToken, before)
    : undefined;
  if (before !== undefined) {
    const { passHeaders = before.passHeaders, when = before.when } = sent;
    checkHeaders({ passHeaders, when, verify: verify ?? before.verify });
  }
  const edit = { ...sent, verify, challengeTokenHash };
  const changed = Object.entries(edit).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (changed.length === 0) return await getTrigger(call);
  const audit = adminAudit(call, "trigger.changed", `trigger:${id}`, {
    fields: changed,
    ...(edit.workflow === undefined ? {} : { workflow: edit.workflow }),
    ...(edit.enabled === undefined ? {} : { enabled: edit.enabled }),
  });
  return triggerAnswer(await store.write(triggers.editTrigger, id, edit, { now: clock.now(), audit }));
}

/** Throws the refusal of a header that proves who calls, and of one that the condition reads and nothing passes. */
function checkHeaders(
  { passHeaders, when, verify }: Pick<TriggerEdit, "passHeaders" | "when" | "verify">,
): void {
  const names = passHeaders ?? [];
  for (const [index, name] of names.entries()) {
    if (!isCredentialHeader(name, verify)) continue;
    throw invalidField(
      `passHeaders[${index}]`,
      `${name} is a credential or a signature, which is never passed`,
    );
  }
  const passed = names.map((name) => name.toLowerCase());
  const read = typeof when === "string" ? conditionHeaders(when) : [];
  const missing = read.find((name) => !passed.includes(name));
  if (missing !== undefined) {
    throw invalidField("when", `it reads the header ${missing}, which passHeaders lacks`);
  }
}

/** The hash of a given token; throws a refusal of a check that the trigger cannot answer. */
function checkedChallenge(
  sent: Pick<TriggerEdit, "challenge">,
  token: string | undefined,
  trigger: Partial<Trigger>,
): string | undefined {
  const { challenge = trigger.challenge } = sent;
  const { min } = CHALLENGE_TOKEN.challengeToken;
  if (token !== undefined && token.trim() !== token) {
    throw invalidField("challengeToken", "it begins or ends with a blank");
  }
  if (token !== undefined && token.length < min) {
    throw invalidField("challengeToken", `expected at least ${min} characters`);
  }
  if (token !== undefined && challenge !== "meta") {
    throw invalidField("challengeToken", "only the challenge meta has a token");
  }
  if (challenge === "meta" && token === undefined && trigger.challengeTokenHash === undefined) {
    throw invalidField("challengeToken", "it is required with the challenge meta");
  }
  const isSigned = typeof challenge === "string" && challenge !== "meta" && challenge !== "dropbox";
  if (isSigned && trigger.verify === undefined) {
    throw invalidField("challenge", `${challenge} requires verify`);
  }
  const scheme = trigger.verify?.scheme ?? "custom";
  if (isSigned && challenge !== "microsoft" && ![challenge, "custom", "hmac-sha256"].includes(scheme)) {
    throw invalidField(
      "challenge",
      `${challenge} does not sign as ${scheme}; expected ${challenge} or custom`,
    );
  }
  return token === undefined ? undefined : sha256OfText(token);
}

async function deleteTrigger(call: RoutedCall) {
  const audit = adminAudit(call, "trigger.deleted", `trigger:${call.id}`);
  if (!await call.store.write(triggers.deleteTrigger, call.id, audit)) throw notFound(TRIGGER);
  return NO_CONTENT;
}

async function callTrigger(call: RoutedCall) {
  const { id, store, idempotencyKey } = call;
  const { event, headers = [] } = await call.fields(TRIGGER_CALL);
  const body = memberText(call.body, "data");
  const refused = idempotencyKeyRefusal(idempotencyKey);
  if (refused !== undefined) throw refused;
  const named = await store.read(triggers.findTriggerByIdOrName, id);
  // A name may look like the start of an identifier.
  const trigger = named ?? await triggerOf({ ...call, id: await wholeId("triggers", id, store) });
  const { name } = trigger;
  const audit = (executionId: string) =>
    adminAudit(call, "trigger.called", `trigger:${trigger.id}`, { name, executionId });
  const sent = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
  const kind = event ?? (trigger.verify && eventOf(trigger.verify, sent));
  return await call.callTrigger(trigger, { idempotencyKey, body, audit, event: kind, headers: sent });
}

/** Neither a trigger with keys nor the secrets of another scheme fit a scheme that was not there at its creation. */
async function checkScheme(next: TriggerVerification, call: RoutedCall): Promise<void> {
  const { verify } = await triggerOf(call);
  if (verify === undefined) throw invalidField("verify", "the calls of this trigger show a key");
  if (verify.scheme !== next.scheme) {
    throw invalidField("verify.scheme", `it cannot be changed, and is ${verify.scheme}`);
  }
  if ((verify.algorithm === "ed25519") !== (next.algorithm === "ed25519")) {
    throw invalidField("verify.algorithm", "its secrets have another form; create another trigger");
  }
  if (verify.secretEncoding === next.secretEncoding) return;
  throw invalidField("verify.secretEncoding", `it cannot be changed, and is ${verify.secretEncoding}`);
}

async function rotate(call: RoutedCall) {
  const { secret } = await call.fields(VERIFICATION_SECRET, { optional: true });
  const { verify } = await triggerOf(call);
  if (verify !== undefined && schemeOf(verify).algorithm === "certificate") {
    throw invalidField("secret", `the scheme ${verify.scheme} has none: the sender has a certificate`);
  }
  if (verify !== undefined) return await rotateSecret(call, checkedSecret(secret, verify));
  if (secret === undefined) return await rotateKey(call);
  throw invalidField("secret", "the calls of this trigger show a key");
}

async function rotateKey(call: RoutedCall) {
  const { key, ...stored } = newKey(call);
  const details = { keyId: stored.id, lastFour: stored.lastFour };
  const audit = adminAudit(call, "trigger.rotated", `trigger:${call.id}`, details);
  const { keys } = found(await call.store.write(triggers.addTriggerKey, call.id, stored, audit), TRIGGER);
  return jsonAnswer(200, {
    key,
    keyId: stored.id,
    keys: keys.map((one) => shownRecord(TRIGGER_KEY, { ...one })),
  });
}

async function rotateSecret(call: RoutedCall, given: string | undefined) {
  const { row, shownOnce } = await newSecret(call, given);
  const audit = adminAudit(call, "trigger.rotated", `trigger:${call.id}`, { secretId: row.id });
  const trigger = found(await call.store.write(triggers.addTriggerSecret, call.id, row, audit), TRIGGER);
  return jsonAnswer(200, {
    ...shownOnce,
    secretId: row.id,
    secrets: trigger.secrets?.map((one) => shownRecord(TRIGGER_SECRET, { ...one })),
  });
}

async function deleteKey(call: RoutedCall) {
  const { id, keyId, store } = call;
  const audit = adminAudit(call, "trigger.key_revoked", `trigger:${id}`, { keyId });
  if (!await store.write(triggers.deleteTriggerKey, id, keyId, audit)) throw notFound("this key");
  return NO_CONTENT;
}

async function deleteSecret(call: RoutedCall) {
  const { id, keyId: secretId, store } = call;
  const audit = adminAudit(call, "trigger.secret_revoked", `trigger:${id}`, { secretId });
  if (!await store.write(triggers.deleteTriggerSecret, id, secretId, audit)) throw notFound("this secret");
  return NO_CONTENT;
}

/** A key, or the first secret of a trigger whose calls are signed, and what is shown of it only now. */
async function newCredentials(call: RoutedCall, signed: ReturnType<typeof sentVerification>) {
  if (signed === undefined) {
    const { key, ...stored } = newKey(call);
    return { keys: [stored], shownOnce: { key } };
  }
  if (schemeOf(signed.verify).algorithm === "certificate") {
    return { keys: [], verify: signed.verify, secrets: [], shownOnce: {} };
  }
  const { row, shownOnce } = await newSecret(call, signed.secret);
  return { keys: [], verify: signed.verify, secrets: [row], shownOnce };
}

/** A secret to store; one that was generated is shown. */
async function newSecret(
  { newId, clock, randomBytes, seal }: RoutedCall,
  given: string | undefined,
): Promise<{ readonly row: TriggerSecret; readonly shownOnce: { readonly secret?: string } }> {
  const secret = given ?? newEndpointSecret(randomBytes);
  const row = { id: newId(), sealed: await seal(secret), createdAt: clock.now() };
  return { row, shownOnce: given === undefined ? { secret } : {} };
}

function newKey({ newId, clock, randomBytes }: RoutedCall): StoredKey & { readonly key: string } {
  return { id: newId(), ...newTriggerKey(randomBytes), createdAt: clock.now() };
}

const TRIGGER = "this trigger";

async function triggerOf({ id, store }: RoutedCall): Promise<Trigger> {
  return found(await store.read(triggers.findTrigger, id), TRIGGER);
}

function triggerAnswer(trigger: Trigger | undefined) {
  return jsonAnswer(200, shown(found(trigger, TRIGGER)));
}

function shown(trigger: Trigger): Record<string, unknown> {
  const warning = trigger.verify && weaknessOf(trigger.verify);
  return shownRecord(TRIGGER_FIELDS, { ...trigger, warning });
}
