/** The descriptions of the resources. The browser gets their values: see `readPageFile`. */
export { AUDIT } from "../../webhooks/resources/audit_entry.ts";
export { DELIVERIES } from "../../webhooks/resources/delivery.ts";
export {
  ENDPOINT_CHECK,
  ENDPOINT_RECOVERY,
  ENDPOINT_ROTATION,
  ENDPOINTS,
} from "../../webhooks/resources/endpoint.ts";
export { AUTHENTICATION, AUTHENTICATION_PARTS } from "../../webhooks/resources/endpoint_authentication.ts";
export { EVENT_KEYS, EVENTS, POSTED_EVENT } from "../../webhooks/resources/event.ts";
export { EXECUTION_DETAILS, EXECUTIONS } from "../../webhooks/resources/execution.ts";
export { DELIVERY_RETRY, ENDPOINT_REPLAY, REPLAYS } from "../../webhooks/resources/replay.ts";
export { CHALLENGE_TOKEN, TRIGGERS } from "../../webhooks/resources/trigger.ts";
export {
  CUSTOM_PLACES,
  CUSTOM_SIGNATURE,
  VERIFICATION_SECRET,
} from "../../webhooks/resources/trigger_verification.ts";
export { SIGNATURE_PRESETS } from "../../webhooks/resources/signature_presets.ts";
