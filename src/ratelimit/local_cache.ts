/** Keys that are known to be over their limit, so that the shared cache need not be asked. */
export interface LocalCache {
  /** The count that was last seen for the key; absent when the key is not known or its window is over. */
  get(key: string, nowSeconds: number): number | undefined;
  /** Remembers the count until the window ends; old keys may give way. */
  set(key: string, count: number, windowEnd: number, nowSeconds: number): void;
  /** Forgets the key. */
  forget(key: string): void;
}
