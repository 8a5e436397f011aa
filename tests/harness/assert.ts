/**
 * The assertions that tests import as `#assert`, over `node:assert/strict`: the names and signatures of
 * `#assert`, which is not on the npm registry.
 */
import assertStrict, { AssertionError } from "node:assert/strict";

export { AssertionError };

/** Fails unless `condition` is truthy. */
export function assert(condition: unknown, message = "Expected a truthy value"): asserts condition {
  if (!condition) {
    throw new AssertionError({ message, actual: condition, expected: true, operator: "assert" });
  }
}

/** Fails unless both are deeply equal, types included. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  if (message === undefined) assertStrict.deepStrictEqual(actual, expected);
  else assertStrict.deepStrictEqual(actual, expected, message);
}

/** Fails if both are deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  if (message === undefined) assertStrict.notDeepStrictEqual(actual, expected);
  else assertStrict.notDeepStrictEqual(actual, expected, message);
}

/** Fails unless `actual` contains `expected`. */
export function assertStringIncludes(actual: string, expected: string, message?: string): void {
  if (actual.includes(expected)) return;
  throw new AssertionError({
    message: message ?? `Expected ${JSON.stringify(actual)} to contain ${JSON.stringify(expected)}`,
    actual,
    expected,
    operator: "includes",
  });
}

/** Fails unless `actual` matches `expected`. */
export function assertMatch(actual: string, expected: RegExp, message?: string): void {
  if (message === undefined) assertStrict.match(actual, expected);
  else assertStrict.match(actual, expected, message);
}

/** Fails unless `run` throws; answers what was thrown. */
export function assertThrows(run: () => unknown, message = "Expected the function to throw"): Error {
  try {
    run();
  } catch (error) {
    return asError(error);
  }
  throw new AssertionError({ message, operator: "throws" });
}

/** Fails unless `run` rejects; answers the reason. */
export async function assertRejects(
  run: () => PromiseLike<unknown>,
  message = "Expected a rejection",
): Promise<Error> {
  try {
    await run();
  } catch (error) {
    return asError(error);
  }
  throw new AssertionError({ message, operator: "rejects" });
}

function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  throw new AssertionError({ message: `A value that is no Error was thrown: ${String(thrown)}` });
}
