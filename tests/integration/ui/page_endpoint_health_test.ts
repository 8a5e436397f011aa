import { assertEquals } from "#assert";
import { FAILING_AFTER } from "../../../src/webhooks/model/endpoint_health.ts";
import { until } from "../../harness/until.ts";
import { choose, pageTest } from "./page_weir.ts";

const ID = "2a408522-2e64-4252-85b6-a125e9aea5da";
const SINCE = "2026-01-31T12:00:00.000Z";
const ENDPOINT = {
  id: ID,
  url: "https://shop.example/hook",
  events: ["*"],
  description: "",
  concurrency: 4,
  secrets: [],
  failingSince: SINCE,
  consecutiveFailures: 1_234,
  attempts: [
    { period: "1h", attempts: 4, failures: 4, successRate: 0 },
    { period: "24h", attempts: 200, failures: 5, successRate: 0.975, meanMs: 34, maxMs: 810 },
  ],
};

pageTest(
  "an endpoint shows its health, and what it has missed is retried",
  { view: "endpoints" },
  async ({ opened, page, dialog }) => {
    let change: object = { enabled: true };
    const recovered: unknown[] = [];
    await page.route("**/api/v1/endpoints**", async (route) => {
      const request = route.request();
      if (request.method() === "PATCH") {
        change = { ...request.postDataJSON(), missed: 12, missedSince: SINCE };
        return await route.fulfill({ json: { ...ENDPOINT, ...change } });
      }
      if (request.method() === "GET") {
        return await route.fulfill({ json: { items: [{ ...ENDPOINT, ...change }] } });
      }
      recovered.push([new URL(request.url()).pathname, request.postDataJSON()]);
      await route.fulfill({ status: 202, json: { count: 12 } });
    });
    await opened.view("Triggers");
    await opened.view("Endpoints");
    const row = page.locator("tbody tr", { hasText: "/hook" });
    await row.getByText("failing", { exact: true }).waitFor();
    for (const text of ["1,234 failures, the first", "97.5%, 34 ms"]) {
      await row.getByText(text).waitFor();
    }
    for (
      const [count, text] of [[FAILING_AFTER - 1, "19 failures, the first"], [
        1,
        "1 failure, the first",
      ]] as const
    ) {
      change = { enabled: true, consecutiveFailures: count };
      await row.getByText(text).waitFor();
      await row.getByText("enabled", { exact: true }).waitFor();
    }
    change = { enabled: true, consecutiveFailures: FAILING_AFTER };
    await row.getByText("failing", { exact: true }).waitFor();
    change = { enabled: false, disabledReason: "failing", disabledAt: SINCE };
    await row.getByText("by Weir: 1,234 failures, the first").waitFor();
    await choose(page, ENDPOINT.url, "Enable");
    await dialog.getByText("12 deliveries failed while it failed or was disabled.").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Endpoint enabled.").waitFor();
    assertEquals(recovered, []);
    change = { enabled: false };
    await row.getByText("disabled", { exact: true }).waitFor();
    await choose(page, ENDPOINT.url, "Enable");
    await dialog.getByRole("button", { name: "Retry them" }).click();
    await until("the recovery", () => recovered.length > 0);
    assertEquals(recovered, [[`/api/v1/endpoints/${ID}/recover`, { since: SINCE, until: "0s" }]]);
  },
);
