import { assertEquals } from "#assert";
import type {
  LimitFacts,
  LimitReport,
  OperationalBatch,
} from "../../../../src/webhooks/model/operational_event.ts";
import { endEpisodes, takeReports } from "../../../../src/webhooks/store/operations/limit_episodes.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { until } from "../../../harness/until.ts";
import { WebhookBed, type WebhookBedOptions } from "../../../harness/webhook_service_fixture.ts";

const START = Date.UTC(2026, 0, 1, 12);
const LIMIT: LimitFacts["limit"] & { requestsPerUnit: number } = { requestsPerUnit: 1 };
const FACTS: LimitFacts = {
  domain: "d",
  isShadow: false,
  freeAt: START + 1_000,
  entries: [{ key: "user", value: "ann@shop.example" }],
  rule: { at: "C:/r.yaml:12:3", metricKey: "d.user" },
  limit: LIMIT,
};

function batch(number: number, part: Partial<OperationalBatch> = {}): OperationalBatch {
  const report: LimitReport = {
    event: "over_limit",
    key: "d_user_ann@shop.example_1",
    hits: 2,
    startedAt: START,
    endsAt: START + 1_000,
    facts: FACTS,
  };
  return { reporter: "r", number, reports: [report], events: [], ...part };
}

/** A service with an endpoint that subscribes to operational events. */
async function openBed(options: WebhookBedOptions = {}): Promise<WebhookBed> {
  const bed = await WebhookBed.open(options);
  const endpoint = { url: "https://one.example/hook", events: ["ratelimit.*", "config.*"], enabled: false };
  assertEquals((await bed.call("POST", "/endpoints", endpoint)).status, 201);
  return bed;
}

async function bedWith(
  write: (call: () => Promise<readonly string[]>) => Promise<readonly string[]>,
  options: WebhookBedOptions = {},
): Promise<WebhookBed> {
  const store: WebhookBedOptions["store"] = (opened) =>
    storeWith(opened, [instead(takeReports, (call) => write(call))]);
  return await openBed({ store, ...options });
}

async function kinds(bed: WebhookBed): Promise<unknown[]> {
  return (await bed.call("GET", "/events")).body.items.map(({ event }) => event).toReversed();
}

const IS_SOLE = { takeLock: () => ({ isSole: true, keep: () => true, release: () => {} }) };

Deno.test("operational events: a store that is busy is tried again, and has each batch once", async () => {
  let failures = 2;
  await using bed = await bedWith(async (call) => {
    const written = await call();
    // As after a connection that ended at the commit.
    if (failures-- > 0) throw new StoreError("busy", "it is busy");
    return written;
  });
  const written = bed.service.report(batch(1));
  let isOver = false;
  void written.then(() => isOver = true);
  await until("the batch to be written", () => {
    bed.clock.advance(1_000);
    return isOver;
  });
  assertEquals(await written, true);
  assertEquals(await kinds(bed), ["ratelimit.over_limit"]);
});

for (const error of [new StoreError("failed", "a bad row"), new TypeError("a fault")]) {
  Deno.test(`operational events: a batch that cannot be written is lost, and causes no event: ${error}`, async () => {
    await using bed = await bedWith(() => Promise.reject(error));
    assertEquals(await bed.service.report(batch(1)), false);
    assertEquals(await kinds(bed), []);
    assertEquals(bed.log.filter((line) => line.startsWith("Cannot write operational events")).length, 1);
  });
}

Deno.test("operational events: the end of the service ends the tries", async () => {
  const bed = await bedWith(() => Promise.reject(new StoreError("busy", "it is busy")));
  const written = bed.service.report(batch(1));
  await until("the first try", () => bed.log.some((line) => line.startsWith("Cannot write")));
  const closing = bed[Symbol.asyncDispose]();
  bed.clock.advance(2_000);
  assertEquals(await written, false);
  await closing;
});

Deno.test("operational events: ends are written by the process that does the work, after a grace", async () => {
  await using bed = await openBed({ parts: IS_SOLE });
  assertEquals(await bed.service.report(batch(1)), true);
  bed.service.start();
  await until("the work to begin", () => {
    bed.clock.advance(0);
    return bed.service.isWorking;
  });
  bed.clock.advance(6_000);
  assertEquals(await kinds(bed), ["ratelimit.over_limit"]);
  await until("the end", async () => {
    bed.clock.advance(1_000);
    return (await kinds(bed)).length === 2;
  });
  assertEquals(await kinds(bed), ["ratelimit.over_limit", "ratelimit.over_limit.ended"]);
});

Deno.test("operational events: a failure to write ends is logged, and they are written later", async () => {
  let isFailing = true;
  const store: WebhookBedOptions["store"] = (opened) =>
    storeWith(opened, [instead(endEpisodes, (call) => {
      return isFailing ? Promise.reject(new StoreError("busy", "it is busy")) : call();
    })]);
  await using bed = await openBed({ store, parts: IS_SOLE });
  await bed.service.report(batch(1));
  bed.service.start();
  const isLogged = () =>
    bed.log.some((line) => line.startsWith("Cannot report the ends of episodes of limits"));
  await until("the failure", () => {
    bed.clock.advance(1_000);
    return isLogged();
  });
  isFailing = false;
  await until("the end", async () => {
    bed.clock.advance(1_000);
    return (await kinds(bed)).length === 2;
  });
});

Deno.test("operational events: values are shown, hashed or omitted, and keys are never stored", async () => {
  const shown: unknown[] = [];
  await using bed = await openBed();
  for (const [index, redact] of ([undefined, "hash", "omit"] as const).entries()) {
    const [report] = batch(1).reports;
    const reports = report === undefined
      ? []
      : [{ ...report, key: `${report.key}${index}`, facts: { ...FACTS, redact } }];
    await bed.service.report(batch(index + 1, { reports }));
    const { items } = (await bed.call("GET", "/events")).body;
    const { body } = await bed.call("GET", `/events/${items[0]?.id}`);
    const { entries, rule } = body["data"] as { entries: unknown; rule: unknown };
    shown.push(entries, rule);
  }
  const hash = /^hmac-sha256:[0-9a-f]{64}$/;
  const isHash = (value: unknown) => typeof value === "string" && hash.test(value);
  const rule = { file: "C:/r.yaml", line: 12, metricKey: "d.user" };
  const [plain, , hashed, , omitted] = shown;
  assertEquals(plain, FACTS.entries);
  assertEquals((hashed as { value: string }[]).map(({ value }) => isHash(value)), [true]);
  assertEquals(omitted, [{ key: "user" }]);
  assertEquals([shown[1], shown[3], shown[5]], [rule, rule, rule]);
});

Deno.test("operational events: a store that is full takes none", async () => {
  const size = { bytes: 101 };
  await using bed = await openBed({
    store: (opened) => storeWith(opened, [], { usedBytes: () => Promise.resolve(size.bytes) }),
    parts: { maxStoreBytes: 100 },
  });
  bed.service.start();
  await until("the size", () => bed.log.some((line) => line.startsWith("Store is full")));
  assertEquals(await bed.service.report(batch(1)), false);
  size.bytes = 100;
  await until("the room", () => {
    bed.clock.advance(1_000);
    return bed.log.some((line) => line.startsWith("Store has room again"));
  });
  assertEquals(await bed.service.report(batch(2)), true);
  assertEquals(await kinds(bed), ["ratelimit.over_limit"]);
});
