import { ADMIN_TOKEN, api } from "../../harness/webhook_weir.ts";
import type { SettingCases } from "./settings_case.ts";
import { compareWebhooks, type WebhookLook } from "./settings_webhook_bed.ts";

const ALICE = "the-token-of-alice-in-this-test-of-settings";
const CI = "the-token-of-ci-in-this-test-of-settings";
const NAMED = [`alice:admin:${ALICE}`, `ci:read:${CI}`];
const NAMED_STATUSES = { unset: [401, 401, 401, 401], set: [200, 202, 200, 403] };

/** Tests of the settings of the administration's tokens. */
export const ADMINISTRATION_CASES: SettingCases = {
  ADMIN_TOKEN: {
    sees: "the administration at all, for those who show it",
    run: () =>
      compareWebhooks({ ADMIN_TOKEN: "another-token-of-the-administration" }, {
        env: { ADMIN_TOKEN: "" },
        async look({ http }) {
          const tokens = [ADMIN_TOKEN, "another-token-of-the-administration"];
          return await Promise.all(
            tokens.map(async (token) => (await api(http, "/endpoints", { token })).status),
          );
        },
        unset: [404, 404],
        set: [401, 200],
      }),
  },
  ADMIN_TOKENS: {
    sees: "the administration for further tokens, by their role",
    run: () =>
      compareWebhooks({ ADMIN_TOKENS: NAMED.join(",") }, { look: statusesOfTokens, ...NAMED_STATUSES }),
  },
  ADMIN_TOKENS_FILE: {
    sees: "the administration for the tokens of the file, by their role",
    async run() {
      const path = await Deno.makeTempFile({ prefix: "weir_tokens_" });
      try {
        await Deno.writeTextFile(path, NAMED.join("\n"));
        await compareWebhooks({ ADMIN_TOKENS_FILE: path }, { look: statusesOfTokens, ...NAMED_STATUSES });
      } finally {
        await Deno.remove(path);
      }
    },
  },
};

/** Each token lists endpoints and posts an event. */
async function statusesOfTokens({ http }: WebhookLook): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (const token of [ALICE, CI]) {
    statuses.push((await api(http, "/endpoints", { token })).status);
    statuses.push((await api(http, "/events", { token, body: { event: "a.b", data: {} } })).status);
  }
  return statuses;
}
