/**
 * Makes the images of the page in `docs/images` from a running Weir with made-up data:
 * `deno run -A scripts/screenshots.ts`. It requires Chromium, which the test task installs.
 */
import { fileURLToPath } from "node:url";
import { standardOutput } from "../src/base/standard_streams.ts";
import { FakeClock } from "../tests/harness/fake_clock.ts";
import { PageBrowser } from "../tests/harness/page_browser.ts";
import { ServeFixture } from "../tests/harness/serve_fixture.ts";
import { until } from "../tests/harness/until.ts";
import { ADMIN_TOKEN } from "../tests/harness/webhook_calls.ts";
import { WebhookReceiver } from "../tests/harness/webhook_receiver.ts";
import { api, untilStoreIsOpen, WebhookFolder } from "../tests/harness/webhook_weir.ts";

const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const SIZE = { width: 1200, height: 800 } as const;
const RULES = { "shop.yaml": await Deno.readTextFile(new URL("../config/rules/shop.yaml", import.meta.url)) };
const MINUTE_MS = 60_000;
/** The history that the charts show. */
const MINUTES = 48;
const ACCOUNTS = ["bob", "carol", "dave", "erin", "frank", "grace"];
const EVENTS = ["order.created", "order.paid", "order.shipped", "invoice.sent"];

/** A view of the page, and a part of it that has its data. */
interface Shot {
  readonly name: string;
  readonly hash: string;
  readonly ready: string;
  readonly isAdministration: boolean;
}

/** Requests decisions of accounts that rise and fall, so that some minutes have refusals. */
async function decide(weir: ServeFixture, clock: FakeClock): Promise<void> {
  for (let minute = 0; minute < MINUTES; minute++) {
    const times = 3 + Math.round(3 * Math.sin(minute / 6) + (minute % 7) / 2);
    for (const account of ACCOUNTS) {
      const descriptors = [{ entries: [{ key: "account", value: account }] }];
      for (let call = 0; call < times; call++) {
        const body = JSON.stringify({ domain: "shop", descriptors });
        await (await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body })).body?.cancel();
      }
    }
    if (minute < MINUTES - 1) clock.advance(MINUTE_MS);
  }
}

/** Adds endpoints, one of which fails, and events for them; returns the identifier of a delivery to that. */
async function deliver(address: string, receiver: string): Promise<string> {
  await call(address, "/endpoints", {
    url: `${receiver}/orders`,
    description: "Orders of the shop",
    events: ["order.*"],
  });
  await call(address, "/endpoints", {
    url: `${receiver}/billing`,
    description: "Billing",
    events: ["invoice.*"],
  });
  const failing = await call(address, "/endpoints", {
    url: `${receiver}/crm`,
    description: "Customers",
    events: ["order.created"],
  });
  for (let count = 0; count < 32; count++) {
    const event = EVENTS[count % EVENTS.length];
    await call(address, "/events", { event, data: { id: `${1_001 + count}`, total: 19.9 + count } });
  }
  const deliveries = `/deliveries?endpointId=${failing.id}&limit=1`;
  const { items } = await until("failed attempts", async () => {
    const page = await call(address, deliveries);
    return page.items.some(({ attempts }) => (attempts?.length ?? 0) >= 2) ? page : undefined;
  });
  return items[0]?.id ?? "";
}

async function call(address: string, path: string, body?: unknown) {
  const answer = await api(address, path, body === undefined ? {} : { body });
  if (answer.status >= 400) throw new Error(`Cannot call "${path}": ${answer.status}`);
  return answer.body;
}

async function shoot(
  browser: PageBrowser,
  weir: ServeFixture,
  { name, hash, ready, isAdministration }: Shot,
) {
  await using opened = await browser.open(`http://${weir.debugAddress}/ui${hash}`, {
    ...SIZE,
    scheme: "light",
  });
  if (isAdministration) await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
  await opened.page.locator(ready).first().waitFor();
  const path = `${IMAGES}${name}.png`;
  await opened.page.screenshot({ path });
  standardOutput.stdout(`docs/images/${name}.png: ${(await Deno.stat(path)).size} bytes`);
}

/** Makes all images. */
async function main(): Promise<void> {
  await Deno.mkdir(IMAGES, { recursive: true });
  const clock = FakeClock.ofMachine({ aheadMs: -(MINUTES - 1) * MINUTE_MS });
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => path === "/crm" ? 503 : 200;
  await using folder = await WebhookFolder.make();
  await using weir = await ServeFixture.start({ env: folder.env, rules: RULES, clock });
  await decide(weir, clock);
  // Its worker was restarted while time was skipped.
  await untilStoreIsOpen(weir.httpAddress);
  const delivery = await deliver(weir.httpAddress, receiver.url);
  await using browser = await PageBrowser.launch();
  const shots: readonly Shot[] = [
    { name: "overview", hash: "", ready: "main svg", isAdministration: false },
    { name: "delivery", hash: `#deliveries/${delivery}`, ready: ".timeline", isAdministration: true },
  ];
  for (const shot of shots) await shoot(browser, weir, shot);
}

if (import.meta.main) {
  await main();
  // Ends Chromium, which runs for the life of this process.
  Deno.exit();
}
