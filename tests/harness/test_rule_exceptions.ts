import type { RuleException } from "./test_rules.ts";

/** Files that a rule does not hold for; one that breaks its rule no more is taken off the list. */
export const EXCEPTIONS: Readonly<Record<string, readonly RuleException[]>> = {
  "no test waits more than 100 ms for time to pass": [
    { file: "tests/integration/config/xds_stream_test.ts", reason: "400 ms" },
    { file: "tests/integration/program/ui_live_test.ts", reason: "200 ms" },
    { file: "tests/integration/program/xds_test.ts", reason: "400 ms" },
    { file: "tests/integration/settings/settings_kv_cases.ts", reason: "200 ms" },
    { file: "tests/integration/settings/settings_push_cases.ts", reason: "300 ms" },
    { file: "tests/integration/settings/settings_xds_cases.ts", reason: "400 ms" },
    { file: "tests/integration/webhooks/webhook_shared_store_test.ts", reason: "500 ms" },
  ],
  "scripts import only the harness from tests, and only their own tests import scripts": [
    {
      file: "tests/integration/program/outage_test.ts",
      reason: "still imports scripts/bench/rate_limit_message.ts",
    },
  ],
};
