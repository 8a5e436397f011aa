import { PLAIN_POLICY, type Policy } from "../../src/ratelimit/policy.ts";

/** The policy of the default settings. */
export const DEFAULT_POLICY: Policy = { ...PLAIN_POLICY, expirationJitterMaxSeconds: 300 };
