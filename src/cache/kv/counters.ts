import type { ConditionalLimit, JointLimits } from "../../ratelimit/algorithms/conditional_limit.ts";
import {
  type Caller,
  type ConditionalHit,
  type Counter,
  type CountReceiver,
  type Hit,
  isConditional,
  isJoint,
  type JointHit,
  type TakenHit,
} from "../../ratelimit/decision/counter_cache.ts";
import { MAX_DURATION_SECONDS } from "../../ratelimit/decision/window.ts";
import { type Ask, NodeCounter } from "../hit_batch.ts";

/** A counter of any kind. */
export type KvCounter = KvWindowCounter | KvScriptCounter;

/** A counter that a script takes hits of. */
export type KvScriptCounter = KvConditionalCounter | KvJointCounter;

/** Hits of such a counter. */
export type KvAsk = Ask<KvWindowCounter> | Ask<KvScriptCounter>;

/** Takes hits of a counter, on the node that has it. */
export type KvTake = (
  counter: KvCounter,
  hits: number,
  caller: Caller | undefined,
  receiver: CountReceiver,
) => void;

const NOTHING = new Uint8Array(0);

/** The counter of a hit. */
export function kvCounterOf(hit: TakenHit, take: KvTake): KvCounter {
  if (isJoint(hit)) return new KvJointCounter(hit, take);
  return isConditional(hit) ? new KvConditionalCounter(hit, take) : new KvWindowCounter(hit, take);
}

/** A counter in a fixed window, and what is known of it. */
export class KvWindowCounter extends NodeCounter implements Counter {
  readonly #take: KvTake;
  /** Of a cluster; absent until it is computed. */
  slot: number | undefined = undefined;
  /** The command for so many hits, if there is one: memory that contains it, and where. */
  keptHits = 0;
  bytes: Uint8Array = NOTHING;
  start = 0;
  end = 0;
  /** Proves that the counter has its expiry. */
  expiry: object | undefined = undefined;

  constructor(hit: Hit, take: KvTake) {
    super(hit);
    this.#take = take;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    this.#take(this, hits, caller, receiver);
  }
}

/** A conditional counter. */
export class KvConditionalCounter implements Counter {
  readonly key: string;
  readonly limit: ConditionalLimit;
  /** Of leases. */
  readonly holder: string | undefined;
  readonly keys: readonly string[];
  readonly expiresInSeconds: readonly number[];
  readonly #take: KvTake;
  /** Of a cluster; absent until it is computed. */
  slot: number | undefined = undefined;
  /** It had a state after the last take. */
  isHeld = false;
  /** The number of calls with other counters that left it out, or were refused. */
  leftOut = 0;

  constructor(hit: ConditionalHit, take: KvTake) {
    this.key = hit.key;
    this.limit = hit.limit;
    this.holder = "holder" in hit ? hit.holder : undefined;
    this.keys = [hit.key];
    this.expiresInSeconds = [Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS)];
    this.#take = take;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    this.#take(this, hits, caller, receiver);
  }
}

/** The counters of several windows, which are on one node. */
class KvJointCounter implements Counter {
  /** Of all windows, which no other counter has; a cluster finds the node by its tag. */
  readonly key: string;
  readonly limit: JointLimits;
  readonly keys: readonly string[];
  readonly expiresInSeconds: readonly number[];
  readonly holder = undefined;
  readonly #take: KvTake;
  /** Of a cluster; absent until it is computed. */
  slot: number | undefined = undefined;

  constructor({ joint, windows }: JointHit, take: KvTake) {
    this.keys = windows.map((window) => window.key);
    this.key = this.keys.join("\n");
    this.limit = joint;
    this.expiresInSeconds = windows.map((window) => Math.min(window.expiresInSeconds, MAX_DURATION_SECONDS));
    this.#take = take;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    this.#take(this, hits, caller, receiver);
  }
}
