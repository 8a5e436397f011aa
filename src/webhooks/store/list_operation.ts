import type { Operation } from "./store.ts";
import type { Work } from "./work.ts";

/** The result of a call that a list leaves unchanged: it is run apart afterwards. */
export const APART = Symbol("apart");

/** An operation on a list of calls: those that arrive together run in one transaction. */
export interface ListOperation<A extends readonly unknown[], T> {
  /** The bytes of a call that count for the size of its list; 0 when absent. */
  bytes?(...call: A): number;
  /** The results in the order of the calls. */
  work(calls: readonly A[]): Work<readonly (T | typeof APART)[]>;
  /** Runs a call that a list has left; with a list of this call alone when absent. */
  apart?(...call: A): Work<T>;
}

const LISTS = new Map<unknown, ListOperation<readonly unknown[], unknown>>();

/** An operation whose concurrent calls a store may run as a list; called by itself, it is a list of one. */
export function listed<A extends readonly unknown[], T>(list: ListOperation<A, T>): Operation<A, T> {
  const operation = function* (...call: A): Work<T> {
    const [result] = yield* list.work([call]);
    return result === APART ? yield* runApart(list, call) : result as T;
  };
  LISTS.set(operation, list);
  return operation;
}

/** The list operation behind an operation of one call. */
export function listOf(operation: unknown): ListOperation<readonly unknown[], unknown> | undefined {
  return LISTS.get(operation);
}

/** Runs a list of calls, which may be empty. */
export function* runList(
  { work }: ListOperation<readonly unknown[], unknown>,
  calls: readonly (readonly unknown[])[],
): Work<readonly unknown[]> {
  return calls.length === 0 ? [] : yield* work(calls);
}

/** Runs a call that a list has left, or that failed with it. */
export function* runApart<A extends readonly unknown[], T>(list: ListOperation<A, T>, call: A): Work<T> {
  if (list.apart !== undefined) return yield* list.apart(...call);
  const [result] = yield* list.work([call]);
  if (result !== APART) return result as T;
  throw new Error("Cannot run an operation: its list left a call that was alone");
}

/** A call of an operation. */
export interface Call {
  readonly operation: Operation<readonly unknown[], unknown>;
  readonly args: readonly unknown[];
}

/** Forgets the types of a call. */
export function callOf<A extends readonly unknown[], T>(operation: Operation<A, T>, args: A): Call {
  return { operation: operation as unknown as Call["operation"], args };
}

/** Runs calls in one transaction, those of one list operation as a list; returns their results in order. */
export function* runCalls(calls: readonly Call[]): Work<readonly unknown[]> {
  const results = new Map<Call, unknown>();
  for (const [operation, group] of Map.groupBy(calls, (call) => call.operation)) {
    const list = listOf(operation);
    if (list === undefined) {
      for (const call of group) results.set(call, yield* operation(...call.args));
      continue;
    }
    const values = yield* list.work(group.map(({ args }) => args));
    for (const [index, call] of group.entries()) {
      const value = values[index];
      results.set(call, value === APART ? yield* runApart(list, call.args) : value);
    }
  }
  return calls.map((call) => results.get(call));
}
