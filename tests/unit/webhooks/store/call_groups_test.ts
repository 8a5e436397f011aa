import { assertEquals } from "#assert";
import { setImmediate } from "node:timers";
import { CallGroups, FailedCall } from "../../../../src/webhooks/store/call_groups.ts";
import { APART } from "../../../../src/webhooks/store/list_operation.ts";
import {
  mayConcernOneCall,
  PoolTimeoutError,
  PostgresError,
} from "../../../../src/webhooks/store/postgres/error.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { handled } from "../../../harness/handled.ts";

type End = (error?: unknown) => void;

/** Groups of numbers, whose transactions the test ends; a group answers with ten times each number. */
function makeBed(
  { isConnected = () => true, connection = () => Promise.resolve() }: {
    readonly isConnected?: () => boolean;
    readonly connection?: () => Promise<void>;
  } = {},
) {
  const clock = new FakeClock();
  const transactions: { readonly numbers: readonly unknown[]; readonly end: End }[] = [];
  const alone: number[] = [];
  const groups = new CallGroups<number>({
    clock,
    maxWaiting: 100,
    waitMs: 1_000,
    maxCalls: 64,
    maxRunning: 2,
    maxOpen: 4,
    bytesOf: (number) => number === 1_000 ? 1_000_000 : 0,
    async run(take) {
      if (!isConnected()) throw new StoreError("busy", "not connected");
      await connection();
      const numbers = take();
      if (numbers.length === 0) return [];
      const ended = Promise.withResolvers<void>();
      transactions.push({
        numbers,
        end: (error) => error === undefined ? ended.resolve() : ended.reject(error),
      });
      await ended.promise;
      return numbers.map(resultOf);
    },
    mayConcernOneCall,
    isTimeout: (error) => error instanceof PoolTimeoutError,
    runApart(number) {
      alone.push(number);
      return Promise.resolve(`alone ${number}`);
    },
  });
  const call = (number: number) => handled(groups.call(number));
  return { clock, groups, transactions, alone, call };
}

function resultOf(number: number): unknown {
  if (number < -10) return new FailedCall(new StoreError("failed", "failed alone"));
  return number < 0 ? APART : 10 * number;
}

/** Lets everything run that waits for nothing. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Why a store refused a call. */
async function refusalOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(() => undefined, (error: unknown) => error);
  return error instanceof StoreError ? error.message : `expected a refusal, got ${error}`;
}

const numbersOf = (count: number) => Array.from({ length: count }, (_, index) => index);

Deno.test("calls of one turn are one transaction, and each gets its own result", async () => {
  const { transactions, call, groups, alone } = makeBed();
  const calls = [1, 2, -3].map(call);
  const failing = call(-20);
  assertEquals([transactions.length, groups.waiting], [0, 4]);
  await settle();
  assertEquals([transactions.map(({ numbers }) => numbers), groups.waiting], [[[1, 2, -3, -20]], 0]);
  transactions[0]?.end();
  assertEquals(await refusalOf(failing), "failed alone");
  assertEquals([await Promise.all(calls), alone], [[10, 20, "alone -3"], [-3]]);
});

Deno.test("what arrives while two transactions run is the next group", async () => {
  const { transactions, call } = makeBed();
  const calls: Promise<unknown>[] = [];
  for (const number of [1, 2, 3, 4]) {
    calls.push(call(number));
    await settle();
  }
  assertEquals(transactions.map(({ numbers }) => numbers), [[1], [2]]);
  transactions[1]?.end();
  await settle();
  assertEquals(transactions.slice(2).map(({ numbers }) => numbers), [[3, 4]]);
  for (const { end } of transactions) end();
  assertEquals(await Promise.all(calls), [10, 20, 30, 40]);
});

Deno.test("a group has at most 64 calls and 1 MiB", async () => {
  const { transactions, call } = makeBed();
  const calls = [...numbersOf(70), 1_000, 1, 1_000].map(call);
  for (let index = 0; index < 3; index++) {
    await settle();
    transactions[index]?.end();
  }
  await Promise.all(calls);
  assertEquals(transactions.map(({ numbers }) => numbers.length), [64, 8, 1]);
});

Deno.test("a slow transaction makes room for another, up to four", async () => {
  const { clock, transactions, call } = makeBed();
  const calls = [];
  for (const number of numbersOf(6)) {
    calls.push(call(number));
    await settle();
    clock.advance(100);
    await settle();
  }
  assertEquals(transactions.map(({ numbers }) => numbers), [[0], [1], [2], [3]]);
  transactions[0]?.end();
  await settle();
  assertEquals(transactions.at(-1)?.numbers, [4, 5]);
  for (const { end } of transactions) end();
  await Promise.all(calls);
});

Deno.test("a group that fails because of a call is run call by call, and others fail whole", async () => {
  for (const state of ["23505", "22001", "55P03", "57014", "40P01"]) {
    const { transactions, call, alone } = makeBed();
    const calls = [1, 2].map(call);
    await settle();
    transactions[0]?.end(new PostgresError("failed", "refused", state));
    assertEquals([await Promise.all(calls), alone], [["alone 1", "alone 2"], [1, 2]]);
  }
  for (const state of ["53300", "57P01", "08006", "25006", "40003", undefined]) {
    const { transactions, call, alone } = makeBed();
    const calls = [1, 2].map(call);
    await settle();
    transactions[0]?.end(new PostgresError("busy", "gone", state));
    for (const one of calls) assertEquals(await refusalOf(one), "gone");
    assertEquals(alone, []);
  }
  const { transactions, call, alone } = makeBed();
  const only = call(1);
  await settle();
  transactions[0]?.end(new PostgresError("failed", "refused", "23505"));
  assertEquals(await refusalOf(only), "refused");
  assertEquals(alone, []);
});

Deno.test("calls that have waited for too long are refused, and so are too many", async () => {
  const { clock, groups, transactions, call } = makeBed();
  const first = [call(1)];
  await settle();
  first.push(call(2));
  await settle();
  const late = call(3);
  clock.advance(99);
  const many = numbersOf(99).map(call);
  assertEquals(await refusalOf(call(4)), "Cannot use the store: 100 operations wait for it");
  assertEquals(groups.waiting, 100);
  clock.advance(901);
  for (let index = 0; index < 4; index++) {
    transactions[index]?.end();
    await settle();
  }
  assertEquals(await refusalOf(late), "Cannot use the store: it was not free within 1000 ms");
  assertEquals(await Promise.all([...first, ...many]), [10, 20, ...numbersOf(99).map((one) => 10 * one)]);
});

Deno.test("without a connection all that wait are refused, and later calls are tried again", async () => {
  let isConnected = false;
  const { transactions, call } = makeBed({ isConnected: () => isConnected });
  for (const one of [1, 2].map(call)) assertEquals(await refusalOf(one), "not connected");
  isConnected = true;
  const later = call(3);
  await settle();
  transactions[0]?.end();
  assertEquals(await later, 30);
});

Deno.test("when no connection was free in time, later calls go on waiting", async () => {
  const connections: PromiseWithResolvers<void>[] = [];
  const { clock, groups, transactions, call } = makeBed({
    connection: () => {
      const connection = Promise.withResolvers<void>();
      connections.push(connection);
      return connection.promise;
    },
  });
  const early = [1, 2].map(call);
  await settle();
  clock.advance(999);
  const late = call(3);
  clock.advance(1);
  connections[0]?.reject(new PoolTimeoutError("busy", "no connection"));
  for (const one of early) assertEquals(await refusalOf(one), "no connection");
  await settle();
  assertEquals(groups.waiting, 1);
  for (const { resolve } of connections) resolve();
  await settle();
  transactions[0]?.end();
  assertEquals([await late, transactions.map(({ numbers }) => numbers)], [30, [[3]]]);
});
