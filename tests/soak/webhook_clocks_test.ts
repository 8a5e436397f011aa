import { assert, assertEquals } from "@std/assert";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { webhookCall } from "../harness/webhook_client.ts";
import { WebhookFleet } from "../harness/webhook_fleet.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { onlyFull } from "./soak_options.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How far the wall clock of each is ahead of that of the database, which is right. */
const AHEAD_MS = [0, 10 * MINUTE_MS, -10 * MINUTE_MS] as const;
/** Both times are cut off to whole milliseconds, and the database is asked over a socket, which a busy machine delays. */
const EARLY_MS = 500;
/** By the clocks of the others it would be ten minutes; a second or so is right, and a busy machine takes its time. */
const LATE_MS = 30_000;
const DELIVERIES = 60;
/** Longer than the pauses between two looks for claims whose lease has ended. */
const LONG_ANSWER_MS = 8_000;
const WORKFLOW = (url: string) =>
  `workflow: order-intake
steps:
  - name: first
    request: { method: POST, url: "${url}/first" }
    retry: { attempts: 2, backoff: 2s }
`;

Deno.test({
  ...onlyFull(needs(["postgres"], "clocks ten minutes ahead and behind: nothing comes twice, early or late")),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    receiver.maxAgeMs = HOUR_MS;
    await using fleet = await openFleet(receiver);
    const { key: token } = await fleet.made("/triggers", { name: "orders", workflow: "order-intake" });
    await fleet.endpoint(receiver, "/due", { events: ["due.*"], concurrency: 16 });
    await fleet.endpoint(receiver, "/long", { events: ["long.*"], concurrency: 16 });
    const isRight = { "/due": false, "/first": false };
    const waiting: Promise<void>[] = [];
    receiver.react = ({ path }, count) => {
      if (path === "/due") return isRight["/due"] ? 200 : 400;
      if (path === "/first") return count === 1 ? 500 : 200;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(promise);
      setTimeout(resolve, LONG_ANSWER_MS);
      return promise.then(() => 200);
    };

    // What takes long is not taken away by those for whom it is later.
    for (let n = 0; n < 6; n++) await fleet.event({ n }, `long-${n}`, "long.event");
    for (let n = 0; n < 6; n++) await fleet.trigger("orders", token, { n }, `execution-${n}`);
    for (let n = 0; n < DELIVERIES; n++) await fleet.event({ n }, `due-${n}`, "due.event");
    const isPending = "event = 'due.event' AND claim_id IS NULL AND attempts = 1";
    await until("each to have failed once", async () => {
      return await fleet.psql(`SELECT count(*) FROM delivery WHERE ${isPending}`) === String(DELIVERIES);
    });

    // Each is due at a moment of its own in the seconds to come, by the clock of the database.
    isRight["/due"] = true;
    const begun = receiver.receptions.length;
    const rows = await fleet.psql(
      `UPDATE delivery SET due_at = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + 2000
         + seq * 7919 % 3000 WHERE ${isPending} RETURNING id || '|' || due_at`,
    );
    const dueAt = new Map(
      rows.split("\n").map((row) => row.split("|")).map(([id = "", due]) => [id, Number(due)]),
    );
    assertEquals(dueAt.size, DELIVERIES);
    await until("everything to be done", async () => {
      return await fleet.isDelivered() && await fleet.isCarriedOut();
    });

    const lateBy = receiver.receptions.slice(begun).flatMap(({ id, path, at }) => {
      if (path !== "/due") return [];
      return performance.timeOrigin + at - (dueAt.get(id) ?? 0);
    });
    assertEquals(lateBy.length, DELIVERIES);
    assert(Math.min(...lateBy) > -EARLY_MS, `one came ${-Math.min(...lateBy)} ms early`);
    assert(Math.max(...lateBy) < LATE_MS, `one came ${Math.max(...lateBy)} ms late`);
    checkRetries(receiver);
    // Nothing was taken away from whoever was at work on it.
    const deliveries = await fleet.all("/deliveries");
    const results = deliveries.map(({ attempts }) => attempts.map(({ result }) => result).join());
    assertEquals(new Set(results), new Set(["acknowledged", "failed,acknowledged"]));
    assertEquals(receiver.receptions.filter(({ path }) => path === "/long").length, 6);
    assertEquals([receiver.repeated.length, receiver.problems], [DELIVERIES + 6, []]);
    checkTimeStamps(receiver);
  },
});

Deno.test({
  ...onlyFull(
    needs(["postgres"], "24 hours are 24 hours of the database, and a clock that is off is told of"),
  ),
  async fn() {
    await using receiver = await WebhookReceiver.start();
    await using fleet = await openFleet(receiver);
    receiver.react = () => 200;
    const { key: token } = await fleet.made("/triggers", { name: "orders", workflow: "order-intake" });
    const call = async (n: number, key: string) => {
      const url = `${fleet.member(n).base}/api/v1/workflows/triggers/orders`;
      const { status, headers, body } = await webhookCall(url, { token, key, body: {} });
      return { id: body.executionId, status, isReplayed: headers.get("idempotency-replayed") === "true" };
    };
    // For the one that is ahead the day would be over, for the one that is behind it would not.
    const cases = [[24 * HOUR_MS - 5 * MINUTE_MS, true], [24 * HOUR_MS + 5 * MINUTE_MS, false]] as const;
    for (const [ageMs, isLive] of cases) {
      for (const n of AHEAD_MS.keys()) {
        const key = `key-${isLive}-${n}`;
        const { id } = await call(0, key);
        await fleet.psql(`UPDATE idempotency SET accepted_at = accepted_at - ${ageMs} WHERE key = '${key}'`);
        const again = await call(n, key);
        assertEquals([n, again.status, again.isReplayed, again.id === id], [n, 202, isLive, isLive]);
      }
    }

    for (const [n, aheadMs] of AHEAD_MS.entries()) {
      const member = fleet.member(n);
      // Whole seconds, of which the way to the database may cost some.
      const told = new RegExp(
        `(?:59\\d|60\\d) s ${aheadMs > 0 ? "ahead of" : "behind"} that of the database`,
      );
      const isTold = ({ lines, text }: { lines: readonly string[]; text: string }) =>
        [lines.join("\n"), text].map((where) => told.test(where));
      await until("health to tell of the clock", async () => {
        const { status, text } = await member.health();
        const isOff = aheadMs !== 0;
        assertEquals([status, ...isTold({ lines: member.lines, text })], [200, isOff, isOff]);
        return true;
      });
      const offset = await member.figure("clock_offset_seconds");
      assert(Math.abs(offset - aheadMs / 1_000) <= 5, `it is told to be ${offset} s off`);
    }
  },
});

async function openFleet(receiver: WebhookReceiver): Promise<WebhookFleet> {
  const fleet = await WebhookFleet.open({
    workflows: { "order-intake.yaml": WORKFLOW(receiver.url) },
    env: { WEBHOOK_TIMEOUT: "60s" },
  });
  await Promise.all(
    AHEAD_MS.map((wallAheadMs, n) => fleet.startMember(n, { faults: { wallAheadMs } })),
  );
  return fleet;
}

/** The wait before the second attempt of a step is between one second and two. */
function checkRetries({ byId }: WebhookReceiver): void {
  const pairs = [...byId.values()].filter(([one]) => one?.path === "/first");
  const waits = pairs.map(([one, two]) => (two?.at ?? NaN) - (one?.at ?? 0));
  assertEquals(pairs.map(({ length }) => length), pairs.map(() => 2));
  assert(Math.min(...waits) >= 1_000 - EARLY_MS, `one came after ${Math.min(...waits)} ms`);
  assert(Math.max(...waits) <= 2_000 + LATE_MS, `one came after ${Math.max(...waits)} ms`);
}

/** What is sent carries the time of whoever sends it. */
function checkTimeStamps({ receptions }: WebhookReceiver): void {
  const sides = receptions.filter(({ headers }) => headers["x-svc-timestamp"] !== undefined)
    .map(({ headers, at }) => 1_000 * Number(headers["x-svc-timestamp"]) - performance.timeOrigin - at)
    .map((ahead) => AHEAD_MS.find((one) => Math.abs(one - ahead) < 4 * MINUTE_MS));
  assertEquals(new Set(sides), new Set(AHEAD_MS));
}
