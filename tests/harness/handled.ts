/**
 * The same promise. Where a test fails before it waits for it, its result is not used: an
 * error without a handler would fail every test of the file.
 */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
