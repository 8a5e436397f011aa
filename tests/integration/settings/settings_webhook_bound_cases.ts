import { assertEquals } from "@std/assert";
import { until } from "../../harness/until.ts";
import { api } from "../../harness/webhook_weir.ts";
import type { SettingCases } from "./settings_case.ts";
import { compareWebhooks, type WebhookLook } from "./settings_webhook_bed.ts";

/** Tests of the settings that bound the store of webhooks. */
export const WEBHOOK_BOUND_CASES: SettingCases = {
  WEBHOOK_STORE_MAX_BYTES: {
    sees: "an event refused as the store is larger",
    run: () =>
      compareWebhooks({ WEBHOOK_STORE_MAX_BYTES: "1" }, {
        async look(look) {
          await until("the size", async () => await metric(look, "store_used_bytes") > 0);
          return await eventAnswer(look);
        },
        unset: 202,
        set: "store_full",
      }),
  },
  WEBHOOK_MAX_BACKLOG: {
    sees: "an event refused as its endpoint has so many",
    run: () =>
      compareWebhooks({ WEBHOOK_MAX_BACKLOG: "2" }, {
        async look(look) {
          const endpoint = { url: "http://127.0.0.1:9/", enabled: false };
          assertEquals((await api(look.http, "/endpoints", { body: endpoint })).status, 201);
          assertEquals([await eventAnswer(look), await eventAnswer(look)], [202, 202]);
          await until("the measurement", async () => {
            const max = await metric(look, "max_backlog");
            return max > 2 || max === await metric(look, "largest_backlog") && max === 2;
          });
          return await eventAnswer(look);
        },
        unset: 202,
        set: "backlog_full",
      }),
  },
};

/** The status of a posted event, and the code where it is refused. */
async function eventAnswer({ http }: WebhookLook): Promise<unknown> {
  const { status, body } = await api(http, "/events", { body: { event: "order.created", data: {} } });
  return body.code ?? status;
}

/** A metric of the webhook service. */
async function metric({ service }: WebhookLook, name: string): Promise<number> {
  const page = await service.page("/stats");
  return Number(new RegExp(`^ratelimit\\.webhooks\\.${name}: (\\d+)$`, "m").exec(page)?.[1] ?? 0);
}
