import { assertEquals } from "#assert";
import { until } from "../../harness/until.ts";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const VIEWS = [
  "Deliveries",
  "Executions",
  "Endpoints",
  "Triggers",
  "Workflows",
  "Events",
  "Event keys",
  "Audit",
];
const LONG = "x".repeat(10_000);
/** Turns the direction of writing, and never turns it back. */
const TURN = "\u202e";
/** Everything that a record may hold, of other kinds and sizes than it has them. */
const ODD_VALUES: readonly unknown[] = [
  null,
  7,
  "text",
  [],
  {},
  [null, 7, { id: 7 }],
  LONG,
  TURN,
  1e300,
  true,
];
/** Pixels beyond the window, and the elements there. */
const BEYOND = `[
  document.documentElement.scrollWidth - document.documentElement.clientWidth,
  [...document.querySelectorAll("body *")].filter((one) => one.scrollWidth > document.documentElement.clientWidth)
    .filter((one) => getComputedStyle(one).overflowX === "visible")
    .map((one) => one.tagName + " " + one.getAttribute("class")),
]`;
const LISTED = `document.querySelector("main p.note[role=status]")?.textContent === ""`;
const FACTS = `location.hash === "#audit" || document.querySelector("main dl.facts") !== null`;
/** Goes to one address after the other in the page, to the next one when what is to be there is; answers their headings. */
const visits = (addresses: readonly string[], isThere: string) =>
  `(async () => {
    const headings = [];
    for (const address of ${JSON.stringify(addresses)}) {
      // Each view has its own heading, while what is below it may look alike.
      const before = location.hash === "#" + address ? undefined : document.querySelector("main h1");
      location.hash = address;
      const end = performance.now() + 60_000;
      while (document.querySelector("main h1") === before || !(${isThere})) {
        if (performance.now() > end) throw new Error("Cannot go to " + address);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      headings.push(document.querySelector("main h1").textContent);
    }
    return headings;
  })()`;
const NAMES =
  ("id url name event state status attempts steps secrets keys headers kinds events limit details " +
    "createdAt at startedAt finishedAt nextAttemptAt concurrency").split(" ");

pageTest(
  "odd answers break no view, and what is not known is not said",
  { view: "endpoints" },
  async (bed) => {
    const { opened, step } = bed;
    await opened.sees("No endpoints yet.");
    await step("nothing is said to be empty before the service has answered", () => unknown(bed));
    await step("refusals are shown in words, whatever they look like", () => refusals(opened));
    await step("records of any kind, size and number", () => oddRecords(bed));
    await step("one record of any kind", () => oddRecord(bed));
    await step("who presses twice goes one page on", () => twice(bed));
    await step("metrics of any kind", () => oddMetrics(bed));
    await step("another version of the service is shown", () => otherVersion(bed));
  },
);

async function answering(
  { page }: OpenedPage,
  path: string | RegExp,
  body: string,
  { status = 200, type = "application/json" } = {},
): Promise<void> {
  // The newest handler answers: with the former one removed first, the service itself could answer in between.
  await page.route(path, (route) => route.fulfill({ status, body, contentType: type }));
}

async function unknown(bed: PageBed): Promise<void> {
  const { opened, page } = bed;
  await answering(opened, "**/api/v1/endpoints*", "", { status: 500 });
  await opened.view("Events");
  await opened.view("Endpoints");
  await opened.sees("The service responded with status 500");
  assertEquals(await page.getByText("No endpoints yet.").isVisible(), false);
  await page.unroute("**/api/v1/endpoints*");
  await opened.sees("No endpoints yet.");
  await late(bed, "**/settings", "No matching settings.", async () => {
    await opened.view("Settings");
    await page.getByLabel("Filter").fill("nothing has this name");
  });
  await late(bed, "**/ui/live", "No keys over their limit recently.", async () => {
    await opened.view("Over limit");
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Over limit" }).waitFor();
  });
  await opened.view("Endpoints");
  await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
}

/** Holds an answer back: until it comes, nothing is said to be empty. */
async function late(
  { opened, page }: PageBed,
  path: string,
  empty: string,
  look: () => Promise<void>,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(path, async (route) => {
    await promise;
    await route.continue();
  });
  await look();
  assertEquals(await page.getByText(empty).isVisible(), false);
  resolve();
  await opened.sees(empty);
  await page.unroute(path);
}

async function refusals(opened: OpenedPage): Promise<void> {
  const cases: readonly (readonly [number, string, string])[] = [
    [200, "<!doctype html><p>Sign in</p>", "Cannot read the response: invalid JSON"],
    [429, '{"detail":"Cannot do this: too many calls"}', "Cannot do this: too many calls"],
    [502, "<html>bad gateway</html>", "The service responded with status 502"],
    [503, "null", "The service responded with status 503"],
    [400, '{"detail":7}', "The service responded with status 400"],
  ];
  for (const [status, body, text] of cases) {
    await answering(opened, "**/api/v1/events?*", body, { status });
    await opened.view("Endpoints");
    await opened.view("Events");
    await opened.sees(text);
  }
  await opened.page.unroute("**/api/v1/events?*");
  await opened.sees("No events yet.");
}

function oddItems(): unknown[] {
  return ODD_VALUES.map((value, index) => ({
    ...Object.fromEntries(NAMES.map((name) => [name, value])),
    id: `odd-${index}`,
  }));
}

async function oddRecords({ opened, page }: PageBed): Promise<void> {
  const many = Array.from({ length: 500 }, (_, index) => ({ id: `one-${index}`, url: `u${index}` }));
  const lists: readonly unknown[] = [null, [], { items: 7 }, { items: [7, null, "x", {}, {}] }];
  const cases = [...lists, { items: oddItems(), nextCursor: 7 }].map((list) => [list, VIEWS] as const);
  // Rows of any number are the list's own, whatever is in them.
  for (const [list, views] of [...cases, [{ items: many }, ["Deliveries", "Audit"]] as const]) {
    await answering(opened, /\/api\/v1\/[a-z-]+\?/, JSON.stringify(list));
    const addresses = views.map((view) => view.toLowerCase().replace(" ", "-"));
    assertEquals(await opened.value(visits(addresses, LISTED)), views);
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function oddRecord({ opened, page }: PageBed): Promise<void> {
  for (const record of [null, {}, ...oddItems()]) {
    await answering(opened, /\/api\/v1\/[a-z-]+\/odd$/, JSON.stringify(record));
    const addresses = ["deliveries", "executions", "events"].flatMap((view) => ["audit", `${view}/odd`]);
    await opened.value(visits(addresses, FACTS));
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function twice({ opened, page }: PageBed): Promise<void> {
  const asked: string[] = [];
  await page.route("**/api/v1/audit?*", async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get("cursor") ?? "";
    asked.push(cursor);
    const next = String(Number(cursor) + 1);
    await route.fulfill({
      json: { items: [{ id: `of-${cursor}`, action: `page.${cursor}` }], nextCursor: next },
    });
  });
  await opened.view("Audit");
  await opened.sees("1–1 of 1+");
  // The page is hidden: it asks for nothing by itself, and what is asked for is what was pressed for.
  await opened.value(`(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    const older = [...document.querySelectorAll("button")].find((one) => one.textContent === "Older");
    older.click();
    older.click();
  })()`);
  await opened.sees("page.1");
  await opened.sees("26–26 of 26+");
  assertEquals(asked.filter((cursor) => cursor === "1").length, 1);
  await opened.value("delete document.hidden");
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function oddMetrics({ opened, page }: PageBed): Promise<void> {
  const key = `shop_${TURN}_account`;
  const snapshot = {
    at: 1e300,
    version: LONG,
    startedAt: -1e300,
    health: { state: "degraded", degraded: [{ component: LONG, reason: TURN }] },
    decisions: { total: 1e21, perSecond: 1e21, overLimitShare: 7 },
    rules: [{ name: LONG }, { name: LONG }, { name: TURN, hits: 1e21, overLimit: 1e22 }],
    rulesTotal: 1e9,
    topOverLimited: [{ key, count: 123 }, { key: LONG, count: 1e21 }],
    configuration: {
      loadedAt: 1e300,
      error: LONG,
      loads: [{ at: -1e300, changed: [LONG, TURN], problems: [LONG, 7], problemCount: 1e9, version: 5 }, {
        version: LONG,
      }],
    },
    cache: LONG,
    boundsMs: [1, "x"],
    metrics: { "ratelimit.memory.keys": 1e21, "ratelimit.process.socket_errors": 1e21, [LONG]: LONG },
    timers: { "ratelimit.cache.round_trip": [1e21, LONG, -5], [LONG]: LONG },
    administration: true,
    webhooks: true,
  };
  await answering(opened, "**/ui/live", `event: snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`);
  await opened.view("Overview");
  await page.getByRole("button", { name: "Pause updates", exact: true }).click();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await opened.sees("The last load failed");
  for (const view of ["Rules", "Over limit", "Diagnostics", "Reloads", "Overview"]) {
    await opened.view(view);
    assertEquals(await opened.value(BEYOND), [0, []]);
  }
  const bidi = `getComputedStyle(document.querySelector(".ranking code")).unicodeBidi`;
  assertEquals(await opened.value(bidi), "isolate");
  assertEquals(await opened.value(BEYOND), [0, []]);
  // The route stays: once connected to the service itself, the page would ask for no other version.
}

async function otherVersion({ opened, page }: PageBed): Promise<void> {
  for (const version of ["1.0.0", "2.0.0"]) {
    const text = `event: snapshot\ndata: ${
      JSON.stringify({ version, administration: true, webhooks: true })
    }\n\n`;
    await answering(opened, "**/ui/live", text);
    await until(version, async () => {
      await opened.connectNow();
      return await page.locator("#version").textContent() === version;
    });
  }
  await page.getByText("The service is version 2.0.0 now; this page is of version 1.0.0: reload it.")
    .waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
}
