/**
 * The same promise. Where a test fails before it waits for it, what becomes of it is nobody's concern: an
 * error that nobody took would fail every test of the file.
 */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
