import { assertEquals } from "#assert";
import { GrpcClient } from "../../harness/grpc_client.ts";
import { QuotaStreamClient } from "../../harness/quota_stream_client.ts";
import { eventually } from "../../harness/until.ts";
import { MARKUP, type PageBed, pageTest } from "./page_weir.ts";

pageTest(
  "quotas show each client of a bucket, its share and the reason for what happens to its requests",
  { env: { QUOTA_MAX_BUCKETS_PER_STREAM: "3" } },
  async (bed) => {
    const { weir, opened, page, step } = bed;
    await opened.view("Quotas");
    await step("without clients, the next step is named", () => {
      return opened.sees(/No client reports buckets\. Configure the filter .*rate_limit_quota/);
    });
    using client = new GrpcClient(weir.weir.grpcAddress);
    const stream = new QuotaStreamClient(client, { "x-weir-client": "envoy-1" });
    const nameless = new QuotaStreamClient(client);
    const buckets = [{ path: "/login" }, { tenant: "ann" }, { [MARKUP]: MARKUP }];
    stream.report("shop", ...buckets.map((bucket) => ({ bucket, allowed: 1 })));
    nameless.report("shop", { bucket: { path: "/login" }, allowed: 1 });
    await step("each client has its share, and the reason", () => clients(bed));
    await step("the filter finds a bucket by its rule or pair", () => filter(bed));
    await step("buckets above the maximum are counted", async () => {
      stream.report("shop", { bucket: { path: "/other" }, allowed: 1 });
      await page.locator(".facts", { hasText: "Reports of buckets above QUOTA_MAX_BUCKETS" }).getByText(
        "1 since the start",
      )
        .waitFor();
    });
    await step("a client that has gone keeps what it may still use", async () => {
      nameless.cancel();
      await page.getByRole("row").filter({ hasText: "without a name" }).getByText("disconnected").waitFor();
    });
    await step("odd answers are shown within bounds", () => odd(bed));
    await step("the reason for no quotas is that of the service", () => reason(bed));
  },
);

async function clients({ page }: PageBed): Promise<void> {
  const rows = page.locator("tbody tr");
  await eventually(4, () => rows.count());
  const named = rows.filter({ hasText: "shop.path_/login" }).filter({ hasText: "envoy-1" });
  // Other clients may have quotas of an earlier process in the first seconds after the start.
  await named.getByText("within its share").waitFor();
  const cells = await named.getByRole("cell").allTextContents();
  assertEquals(cells.slice(0, 4), ["path=/login", "shop.path_/login", "0.0278/s", "envoy-1"]);
  await rows.filter({ hasText: "tenant=ann" }).getByText("all requests pass: shadow mode").waitFor();
  await rows.filter({ hasText: MARKUP }).first().waitFor();
}

async function filter({ opened, page }: PageBed): Promise<void> {
  const input = page.getByLabel("Filter");
  await input.fill("TENANT=a");
  await opened.sees("Buckets: 1 of 1");
  await eventually(1, () => page.locator("tbody tr").count());
  await input.fill("no such bucket");
  await opened.sees("No matching buckets.");
  await input.fill("");
  await opened.sees("Buckets: 3 of 3");
}

async function odd({ opened, page }: PageBed): Promise<void> {
  const odd = [null, 7, {}, {}, { clients: [7, null, {}], bucket: 7, limit: "x" }];
  const long = "a".repeat(2_000);
  const clients = Array.from(
    { length: 100 },
    () => ({ name: long, why: long, demand: 1e300, share: -1e-300 }),
  );
  const many = Array.from({ length: 6 }, (_, index) => ({
    domain: "shop",
    bucket: [{ key: long, value: String(index) }],
    limit: { kind: "rate", perSecond: 1e300 },
    clientCount: 1e9,
    clients,
  }));
  for (const [quotas, count] of [[odd, 4], [many, 500], [{}, 0]] as const) {
    await page.route("**/quotas?*", (route) => route.fulfill({ json: { buckets: "x", quotas } }));
    await eventually(count, () => page.locator("tbody tr").count());
    await page.unrouteAll({ behavior: "ignoreErrors" });
  }
  assertEquals(await opened.value("document.documentElement.scrollWidth - innerWidth"), 0);
}

async function reason({ opened, page }: PageBed): Promise<void> {
  const why = "quotas require BACKEND_TYPE=kv or memory";
  await page.route("**/quotas?*", (route) => route.fulfill({ json: { buckets: 0, quotas: [], why } }));
  await opened.sees(why);
  await eventually(0, () => page.getByText("No client reports buckets").count());
  await page.unrouteAll({ behavior: "ignoreErrors" });
}
