import type { Descriptor } from "../../src/ratelimit/request.ts";
import { ServiceFixture } from "../../tests/harness/service_fixture.ts";

/** Each algorithm with the line of its rule. */
export const ALGORITHM_RULES = {
  fixed_window: "{ unit: minute, requests_per_unit: 60 }",
  sliding_window: "{ unit: minute, requests_per_unit: 60, algorithm: sliding_window }",
  token_bucket: "{ unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 20 }",
  concurrency: "{ algorithm: concurrency, max_in_flight: 10, lease: 60s }",
} as const;
/** The name of an algorithm. */
export type PicturedAlgorithm = keyof typeof ALGORITHM_RULES;

/** Length of the picture, in seconds. */
export const SECONDS = 180;
/** The start of a minute. */
const START_SECONDS = 1_700_000_040;
const STEP_MS = 100;
const STEPS_PER_SECOND = 1_000 / STEP_MS;
/** Requests per second, from a second on. Both bursts end within their windows, the first goes over the end of one. */
const TRAFFIC = [[0, 0.5], [45, 5], [75, 0.5], [135, 5], [150, 0.5]] as const;
/** Time that a request is in flight. */
const REQUEST_SECONDS = 4;

/** The requests of each second, and what became of them. */
interface PicturedSecond {
  passed: number;
  refused: number;
}

/** The outcome of the traffic with one algorithm. */
export interface PicturedRun {
  readonly algorithm: PicturedAlgorithm;
  readonly seconds: readonly PicturedSecond[];
  /** Most requests that passed in a span of a minute. */
  readonly mostInMinute: number;
  readonly mostInFlight: number;
}

/** Decides on the same traffic under one algorithm, by the service with counters in memory and its own clock. */
export async function runTraffic(algorithm: PicturedAlgorithm): Promise<PicturedRun> {
  const rules = `domain: picture\ndescriptors:\n- { key: user, rate_limit: ${ALGORITHM_RULES[algorithm]} }\n`;
  await using fixture = new ServiceFixture({ files: { "picture.yaml": rules }, at: START_SECONDS });
  const seconds = Array.from({ length: SECONDS }, (): PicturedSecond => ({ passed: 0, refused: 0 }));
  const passedAt: number[] = [];
  let [due, mostInMinute, mostInFlight] = [0, 0, 0];
  for (let step = 0; step < SECONDS * STEPS_PER_SECOND; step++) {
    const second = Math.floor(step / STEPS_PER_SECOND);
    const ended = passedAt.filter((at) => at === step - REQUEST_SECONDS * STEPS_PER_SECOND).length;
    if (algorithm === "concurrency" && ended > 0) {
      await ask(fixture, { hitsAddend: ended, isNegativeHits: true });
    }
    for (due += rateAt(second) / STEPS_PER_SECOND; due >= 1; due--) {
      const hasPassed = await ask(fixture, { hitsAddend: 1 });
      const counts = seconds[second];
      if (counts !== undefined) counts[hasPassed ? "passed" : "refused"]++;
      if (hasPassed) passedAt.push(step);
    }
    mostInMinute = Math.max(mostInMinute, passedWithin(passedAt, step, 60));
    mostInFlight = Math.max(mostInFlight, passedWithin(passedAt, step, REQUEST_SECONDS));
    fixture.clock.advance(STEP_MS);
  }
  return { algorithm, seconds, mostInMinute, mostInFlight };
}

async function ask(
  { service }: ServiceFixture,
  part: Pick<Descriptor, "hitsAddend" | "isNegativeHits">,
): Promise<boolean> {
  const descriptor = { entries: [{ key: "user", value: "ann" }], ...part };
  const { overallCode } = await service.shouldRateLimit({
    domain: "picture",
    descriptors: [descriptor],
    hitsAddend: 0,
  });
  return overallCode === "OK";
}

function rateAt(second: number): number {
  return TRAFFIC.findLast(([from]) => from <= second)?.[1] ?? 0;
}

function passedWithin(passedAt: readonly number[], step: number, seconds: number): number {
  return passedAt.filter((at) => at > step - seconds * STEPS_PER_SECOND).length;
}
