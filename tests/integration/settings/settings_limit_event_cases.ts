import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { until } from "../../harness/until.ts";
import { api } from "../../harness/webhook_weir.ts";
import type { SettingCases } from "./settings_case.ts";
import { compareWebhooks } from "./settings_webhook_bed.ts";

/** Refuses a key over a year, and reports that. */
const REFUSING = `domain: d
descriptors:
- key: k
  events: [over_limit]
  rate_limit: { unit: year, requests_per_unit: 0 }
`;

/** Tests of the settings of events of limits. */
export const LIMIT_EVENT_CASES: SettingCases = {
  RATE_LIMIT_EVENTS_MAX_PER_SECOND: {
    sees: "events of rules suppressed",
    run: () =>
      compareWebhooks({ RATE_LIMIT_EVENTS_MAX_PER_SECOND: "0" }, {
        async look({ http, service }) {
          const endpoint = { url: "http://127.0.0.1:9/", events: ["ratelimit.over_limit"], enabled: false };
          assertEquals((await api(http, "/endpoints", { body: endpoint })).status, 201);
          await Deno.writeTextFile(join(service.rulesFolder, "d.yaml"), REFUSING);
          const body = { domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] };
          await until("the rule", async () => (await service.ask(body)).status === 429);
          return await until("an event", async () => {
            const { items } = (await api(http, "/events")).body;
            const stats = await service.stats();
            const counts = [stats["ratelimit.events.suppressed"], stats["ratelimit.events.dropped"]];
            const isSent = items.some(({ event }) => event === "ratelimit.over_limit");
            return (isSent || counts[0] !== 0) && [isSent, ...counts];
          });
        },
        unset: [true, 0, 0],
        set: [false, 1, 0],
      }),
  },
};
