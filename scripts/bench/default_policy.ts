import { PLAIN_POLICY, type Policy } from "../../src/ratelimit/policy.ts";

/** How decisions are made with the defaults of the settings. */
export const DEFAULT_POLICY: Policy = { ...PLAIN_POLICY, expirationJitterMaxSeconds: 300 };
