import { assertEquals } from "#assert";
import {
  afterAttempts,
  type AttemptSummary,
  type FailureRun,
  type Failures,
  followedBy,
  type HealthChange,
  NO_FAILURES,
} from "../../../../src/webhooks/model/endpoint_health.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const OPTIONS = { disableAfterMs: 5 * DAY };

function failures(count: number, firstAt: number, lastAt = firstAt, areReportable = true): Failures {
  return { count, firstAt, lastAt, areReportable };
}

function summary(part: Partial<AttemptSummary>): AttemptSummary {
  return { succeeded: 0, failed: 0, answered: 0, totalMs: 0, maxMs: 0, ...part };
}

const RUN: FailureRun = {
  failures: 19,
  failingSince: 0,
  lastFailureAt: HOUR,
  failingMs: HOUR,
  isReported: false,
};

const CHANGES: Readonly<
  Record<
    string,
    {
      readonly before?: FailureRun;
      readonly succeeded?: number;
      readonly failures?: Failures;
      readonly run: FailureRun;
      readonly changes?: readonly HealthChange[];
    }
  >
> = {
  "a success": { succeeded: 1, run: NO_FAILURES },
  "a first failure": {
    failures: failures(1, 7),
    run: { failures: 1, failingSince: 7, lastFailureAt: 7, failingMs: 0, isReported: false },
  },
  "20 failures at the same time": {
    failures: failures(20, 7, 9),
    run: { failures: 20, failingSince: 7, lastFailureAt: 9, failingMs: 2, isReported: true },
    changes: ["failing"],
  },
  "the 20th failure": {
    before: RUN,
    failures: failures(1, 2 * HOUR),
    run: { failures: 20, failingSince: 0, lastFailureAt: 2 * HOUR, failingMs: 2 * HOUR, isReported: true },
    changes: ["failing"],
  },
  "the 20th failure, of an operational event": {
    before: RUN,
    failures: failures(1, HOUR, HOUR, false),
    run: { ...RUN, failures: 20 },
  },
  "the 21st failure": {
    before: { ...RUN, failures: 20, isReported: true },
    failures: failures(1, HOUR),
    run: { ...RUN, failures: 21, isReported: true },
  },
  "a success before it was reported": { before: RUN, succeeded: 1, run: NO_FAILURES },
  "a success after it was reported": {
    before: { ...RUN, isReported: true },
    succeeded: 1,
    run: NO_FAILURES,
    changes: ["recovered"],
  },
  "a success and as many failures again": {
    before: { ...RUN, isReported: true },
    succeeded: 1,
    failures: failures(20, DAY),
    run: { failures: 20, failingSince: DAY, lastFailureAt: DAY, failingMs: 0, isReported: true },
    changes: ["recovered", "failing"],
  },
  "a gap of a day": {
    before: RUN,
    failures: failures(1, HOUR + DAY, HOUR + DAY, false),
    run: { ...RUN, failures: 20, lastFailureAt: HOUR + DAY, failingMs: HOUR + DAY },
  },
  "a longer gap": {
    before: RUN,
    failures: failures(1, HOUR + DAY + 1, HOUR + DAY + 1, false),
    run: { ...RUN, failures: 20, lastFailureAt: HOUR + DAY + 1 },
  },
  "a clock that was set back": {
    before: RUN,
    failures: failures(1, -DAY, -2 * DAY, false),
    run: { ...RUN, failures: 20, lastFailureAt: -2 * DAY },
  },
  "5 days of failures but for a millisecond": {
    before: { ...RUN, failures: 50, failingMs: 5 * DAY - HOUR, isReported: true },
    failures: failures(1, 2 * HOUR - 1),
    run: { ...RUN, failures: 51, lastFailureAt: 2 * HOUR - 1, failingMs: 5 * DAY - 1, isReported: true },
  },
  "5 days of failures": {
    before: { ...RUN, failures: 50, failingMs: 5 * DAY - HOUR, isReported: true },
    failures: failures(1, 2 * HOUR),
    run: { ...RUN, failures: 51, lastFailureAt: 2 * HOUR, failingMs: 5 * DAY, isReported: true },
    changes: ["disabled"],
  },
  "an endpoint that is gone": {
    failures: { ...failures(1, HOUR), goneAt: HOUR },
    run: { failures: 1, failingSince: HOUR, lastFailureAt: HOUR, failingMs: 0, isReported: false },
    changes: ["gone"],
  },
  "5 days without failures, and a failure": {
    succeeded: 1,
    before: { ...RUN, failingMs: 5 * DAY },
    failures: failures(1, DAY),
    run: { failures: 1, failingSince: DAY, lastFailureAt: DAY, failingMs: 0, isReported: false },
  },
};

for (
  const [name, { before = NO_FAILURES, succeeded = 0, failures, run, changes = [] }] of Object.entries(
    CHANGES,
  )
) {
  Deno.test(`health of an endpoint: ${name}`, () => {
    assertEquals(afterAttempts(before, { succeeded, failures }, OPTIONS), { run, changes });
    const never = afterAttempts(before, { succeeded, failures }, { disableAfterMs: 0 });
    assertEquals(never, { run, changes: changes.filter((change) => change !== "disabled") });
  });
}

Deno.test("summaries of attempts: sums, and the failures after the last success", () => {
  const success = summary({ succeeded: 1, answered: 1, totalMs: 5, maxMs: 5 });
  const early = summary({ failed: 2, failures: failures(2, 10, 11, false) });
  const late = summary({ failed: 3, answered: 1, totalMs: 9, maxMs: 9, failures: failures(3, 12, 15) });
  assertEquals(followedBy(early, late), {
    ...summary({ failed: 5, answered: 1, totalMs: 9, maxMs: 9 }),
    failures: failures(5, 10, 15),
  });
  assertEquals(followedBy(early, success), {
    ...summary({ succeeded: 1, failed: 2, answered: 1, totalMs: 5, maxMs: 5 }),
    failures: undefined,
  });
  assertEquals(followedBy(success, late), {
    ...summary({ succeeded: 1, failed: 3, answered: 2, totalMs: 14, maxMs: 9 }),
    failures: failures(3, 12, 15),
  });
  assertEquals(followedBy(early, { ...late, succeeded: 1 }).failures, failures(3, 12, 15));
});
