import type { Operation, WebhookStore } from "../../src/webhooks/store/store.ts";

interface Replaced {
  readonly operation: unknown;
  readonly run: (call: () => Promise<unknown>, args: readonly unknown[]) => Promise<unknown>;
}

/** Replaces an operation; `call` runs the original. */
export function instead<A extends readonly unknown[], T>(
  operation: Operation<A, T>,
  run: (call: () => Promise<T>, ...args: A) => Promise<T>,
): Replaced {
  return { operation, run: (call, args) => run(call as () => Promise<T>, ...args as unknown as A) };
}

/** A store of which some operations are replaced, and some of its methods. */
export function storeWith(
  store: WebhookStore,
  replaced: readonly Replaced[],
  methods: Partial<WebhookStore> = {},
): WebhookStore {
  const asked = (name: "read" | "write"): WebhookStore["read"] => (operation, ...args) => {
    type Answer = ReturnType<typeof call>;
    const call = () => store[name](operation, ...args);
    const found = replaced.find((one) => one.operation === operation);
    return found === undefined ? call() : found.run(call, args) as Answer;
  };
  return {
    read: asked("read"),
    write: asked("write"),
    claimDeliveries: (options) => store.claimDeliveries(options),
    clearRemoved: (options) => store.clearRemoved(options),
    usedBytes: () => store.usedBytes(),
    metrics: (now) => store.metrics(now),
    close: () => store.close(),
    ...methods,
  };
}
