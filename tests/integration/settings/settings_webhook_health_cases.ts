import { until } from "../../harness/until.ts";
import { api, WebhookFolder, WebhookReceiver } from "../../harness/webhook_weir.ts";
import type { SettingCases } from "./settings_case.ts";
import { lookAt } from "./settings_webhook_bed.ts";

/** Tests of the settings of the health of endpoints. */
export const WEBHOOK_HEALTH_CASES: SettingCases = {
  WEBHOOK_DISABLE_AFTER: {
    sees: "an endpoint that only fails disabled",
    async run() {
      await using receiver = new WebhookReceiver();
      receiver.status = 500;
      const failing = async ({ http }: { http: string }) => {
        const { body: { id } } = await api(http, "/endpoints", { body: { url: receiver.url } });
        for (let n = 0; n < 3; n++) await api(http, "/events", { body: { event: "a", data: {} } });
        return async () => (await api(http, `/endpoints/${id}`)).body;
      };
      for (const [env, isDisabled] of [[{ WEBHOOK_DISABLE_AFTER: "1ms" }, true], [{}, false]] as const) {
        await using folder = await WebhookFolder.make();
        await lookAt(folder, env, async (place) => {
          const shown = await failing(place);
          // Three first attempts and their immediate retries, all within milliseconds.
          const hasFailed = async () =>
            Number((await shown())["consecutiveFailures"]) >= (isDisabled ? 2 : 6);
          await until("the failures", hasFailed);
          await until("its state", async () => (await shown())["enabled"] === !isDisabled);
        });
      }
    },
  },
};
