/** Long work that may pause at every `yield`; the last step answers its result. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** How long a pause is. Measured: with `setImmediate` the sockets of this process hardly ever had a turn. */
const PAUSE_MS = 2;

/** Does the work without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Does the work a step at a time; in every pause whatever else is due in this process has its turn. */
export async function runStepsInTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    step = steps.next();
  }
  return step.value;
}
