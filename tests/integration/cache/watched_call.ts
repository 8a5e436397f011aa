import type { FakeClock } from "../../harness/fake_clock.ts";

/** Outcome of a call: its answer, or why it failed; and after how long by the clock. */
interface Outcome<T> {
  readonly answer?: T;
  readonly message?: string;
  readonly ms: number;
}

/** The outcome of a call, in a list that is empty until it is over. */
export function watchCall<T>(call: Promise<T>, clock: FakeClock): Outcome<T>[] {
  const began = clock.now();
  const outcomes: Outcome<T>[] = [];
  call.then(
    (answer) => outcomes.push({ answer, ms: clock.now() - began }),
    ({ message }: Error) => outcomes.push({ message, ms: clock.now() - began }),
  );
  return outcomes;
}

/** To the end of this turn: what waits for no clock and no server has happened. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
