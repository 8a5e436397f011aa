import { assertEquals } from "#assert";
import type { Delivery } from "../../../../src/webhooks/model/records.ts";
import { whyNotDelivered, type WhyNotDeliveredOptions } from "../../../../src/webhooks/api/why.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const NOW = Date.parse("2026-03-28T12:00:00Z");

const NEW: Delivery = {
  id: "3b241101-e2bb-4255-8caf-4136c566a962",
  endpointId: "e",
  eventId: "v",
  event: "a.b",
  state: "attempting",
  createdAt: NOW - MINUTE,
  slot: 0,
  dueAt: NOW - SECOND,
};
const LATER: Delivery = {
  ...NEW,
  state: "retrying",
  slot: 3,
  firstFailureAt: NOW - MINUTE,
  dueAt: NOW + 4 * MINUTE,
};
const FAILED: Delivery = { ...LATER, state: "failed", slot: 8, dueAt: undefined, finishedAt: NOW - HOUR };
const ON = { enabled: true, concurrency: 4 };
const OFF = { enabled: false, concurrency: 4 };
const RESENT = { ...FAILED, resendAt: NOW - SECOND };

const RATE = { rateLimit: { unit: "hour", requestsPerUnit: 10 } } as const;

type Case = readonly [name: string, options: Omit<WhyNotDeliveredOptions, "now">, why: string];

const CASES: readonly Case[] = [
  [
    "new, and others make attempts too",
    { delivery: NEW, endpoint: ON },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; it starts as soon as " +
    "WEBHOOK_MAX_IN_FLIGHT and the concurrency of its endpoint, 4, allow it",
  ],
  [
    "new",
    { delivery: NEW, endpoint: ON, inFlight: 0 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; " +
    "it starts as soon as WEBHOOK_MAX_IN_FLIGHT allows it",
  ],
  [
    "new, and all deliveries are paused",
    { delivery: NEW, endpoint: ON, isPaused: true, inFlight: 0 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; all deliveries are paused",
  ],
  [
    "later, and all deliveries are paused",
    { delivery: LATER, endpoint: ON, isPaused: true },
    "the next attempt starts at 2026-03-28T12:04:00.000Z, retry 4 of 8 (5 minutes after the first failure); " +
    "all deliveries are paused",
  ],
  [
    "new, its endpoint is busy",
    { delivery: NEW, endpoint: ON, inFlight: 4 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; " +
    "it waits for one of the 4 attempts that its endpoint may have in flight",
  ],
  [
    "new, its endpoint is not quite busy",
    { delivery: { ...NEW, dueAt: NOW }, endpoint: ON, inFlight: 3 },
    "an attempt has been due since 2026-03-28T12:00:00.000Z, the first one; " +
    "it starts as soon as WEBHOOK_MAX_IN_FLIGHT allows it",
  ],
  [
    "new, its endpoint waits for its rate",
    { delivery: NEW, endpoint: { ...ON, ...RATE, rateNextAt: NOW + MINUTE }, failures: 99, inFlight: 4 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; it waits for the rate limit of its " +
    "endpoint, 10 per hour, which allows the next attempt at 2026-03-28T12:01:00.000Z",
  ],
  [
    "new, the rate of its endpoint allows it",
    { delivery: NEW, endpoint: { ...ON, ...RATE, rateNextAt: NOW - 999 }, inFlight: 0 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; it waits for the rate limit of its " +
    "endpoint, 10 per hour, which allows the next attempt now",
  ],
  [
    "new, the rate of its endpoint has allowed it for a second",
    { delivery: NEW, endpoint: { ...ON, ...RATE, rateNextAt: NOW - SECOND }, inFlight: 0 },
    "an attempt has been due since 2026-03-28T11:59:59.000Z, the first one; " +
    "it starts as soon as WEBHOOK_MAX_IN_FLIGHT allows it",
  ],
  [
    "waited for the rate of its endpoint before",
    { delivery: { ...LATER, waitedMs: 2 * 3_600_000 + 5 }, endpoint: ON },
    "the next attempt starts at 2026-03-28T12:04:00.000Z, retry 4 of 8 (5 minutes after the first failure, " +
    "delayed by 2 hours by the rate limit of its endpoint)",
  ],
  [
    "its retries waited for the rate for a day",
    { delivery: { ...FAILED, reason: "rate_limited" }, endpoint: ON },
    "it failed permanently at 2026-03-28T11:00:00.000Z: the rate limit of its endpoint delayed its retries until " +
    "24 hours after the first failure, and the last one failed",
  ],
  [
    "the first attempt is out",
    { delivery: { ...NEW, claimId: "c", leaseUntil: NOW + 1 }, endpoint: ON },
    "an attempt is in flight, the first one",
  ],
  [
    "waits for its slot",
    { delivery: LATER, endpoint: ON, inFlight: 4 },
    "the next attempt starts at 2026-03-28T12:04:00.000Z, retry 4 of 8 (5 minutes after the first failure)",
  ],
  ...([
    [0, "retry 1 of 8 (immediately)"],
    [1, "retry 2 of 8 (30 seconds after the first failure)"],
    [2, "retry 3 of 8 (1 minute after the first failure)"],
    [4, "retry 5 of 8 (30 minutes after the first failure)"],
    [5, "retry 6 of 8 (2 hours after the first failure)"],
    [7, "retry 8 of 8 (24 hours after the first failure)"],
  ] as const).map(([slot, text]): Case => [
    `slot ${slot}`,
    { delivery: { ...LATER, slot }, endpoint: ON },
    `the next attempt starts at 2026-03-28T12:04:00.000Z, ${text}`,
  ]),
  [
    "a retry is out",
    { delivery: { ...LATER, slot: 0, claimId: "c", leaseUntil: NOW + 1 }, endpoint: ON },
    "an attempt is in flight, retry 1 of 8 (immediately)",
  ],
  [
    "its process is gone",
    { delivery: { ...LATER, claimId: "c", leaseUntil: NOW - MINUTE }, endpoint: ON },
    "the lease of an attempt expired at 2026-03-28T11:59:00.000Z; the attempt is repeated once its claim is released",
  ],
  [
    "disabled, never tried",
    { delivery: NEW, endpoint: OFF },
    "its endpoint is disabled; it waits until the endpoint is enabled",
  ],
  [
    "disabled, tried",
    { delivery: LATER, endpoint: OFF },
    "its endpoint is disabled; it fails permanently at 2026-03-29T11:59:00.000Z unless the endpoint is enabled",
  ],
  ...([
    ["a status", { status: 401, errorKind: "status", error: "a text" }, "the endpoint returned 401"],
    [
      "a kind and a text",
      { errorKind: "connect", error: "connection refused (127.0.0.1:9000)" },
      "connection refused (127.0.0.1:9000)",
    ],
    ["a kind alone", { errorKind: "interrupted" }, "interrupted"],
  ] as const).map(([kind, lastAttempt, text]): Case => [
    `the last attempt has ${kind}`,
    { delivery: { ...LATER, slot: 1 }, endpoint: ON, lastAttempt },
    "the next attempt starts at 2026-03-28T12:04:00.000Z, retry 2 of 8 (30 seconds after the first failure); " +
    `last attempt: ${text}`,
  ]),
  ["deleted", { delivery: LATER, endpoint: undefined }, "its endpoint was deleted"],
  ["without a time", { delivery: { ...LATER, dueAt: undefined }, endpoint: ON }, "no attempt is scheduled"],
  [
    "asked for by hand",
    { delivery: RESENT, endpoint: ON, inFlight: 0 },
    "a manual attempt was requested at 2026-03-28T11:59:59.000Z; " +
    "it starts as soon as WEBHOOK_MAX_IN_FLIGHT allows it",
  ],
  [
    "asked for by hand, disabled",
    { delivery: RESENT, endpoint: OFF },
    "a manual attempt was requested at 2026-03-28T11:59:59.000Z; its endpoint is disabled",
  ],
  [
    "delivered",
    {
      delivery: { ...NEW, state: "acknowledged", dueAt: undefined, finishedAt: NOW },
      endpoint: ON,
      lastAttempt: { status: 200 },
    },
    "delivered: the endpoint returned 2xx at 2026-03-28T12:00:00.000Z",
  ],
  ...([
    ["exhausted", "no attempt within 24 hours of the first failure succeeded"],
    ["endpoint_disabled", "its endpoint was still disabled 24 hours after the first failure"],
    ["endpoint_deleted", "its endpoint was deleted"],
    ["payload_erased", "the payload of its event was erased"],
  ] as const).map(([reason, text]): Case => [
    `failed, ${reason}`,
    { delivery: { ...FAILED, reason }, endpoint: ON },
    `it failed permanently at 2026-03-28T11:00:00.000Z: ${text}`,
  ]),
];

for (const [name, options, why] of CASES) {
  Deno.test(`why a delivery has not arrived: ${name}`, () => {
    assertEquals(whyNotDelivered({ ...options, now: NOW }), why);
  });
}
