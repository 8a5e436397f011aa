import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { AttemptReport } from "./metrics.ts";
import type { Sealed } from "../model/records.ts";
import type { DeliverySender } from "./sender.ts";
import type { WebhookStore } from "../store/store.ts";

/** The steps of an attempt at which a process may end. */
export type AttemptStep = "claim" | "attempt_row" | "send" | "write_back";

/** Called before and after each step. */
export type AttemptSteps = (when: "before" | "after", step: AttemptStep) => void | Promise<void>;

/** Opens what was sealed. */
export interface Unsealer {
  unseal(sealed: Sealed): Promise<string>;
}

/** What a dispatcher works with. */
export interface DispatcherOptions {
  readonly store: WebhookStore;
  readonly sender: DeliverySender;
  readonly secretBox: Unsealer;
  /** The time of all that is stored, which several machines may share. */
  readonly clock: Clock;
  /** What a receiver is told as the time; `clock` when absent. */
  readonly wallClock?: Pick<Clock, "now"> | undefined;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly newId: () => string;
  readonly logger: Logger;
  /** Attempts that run at once over all endpoints. */
  readonly maxInFlight: number;
  /** Of an attempt, where its endpoint has none of its own. */
  readonly timeoutMs: number;
  /** Of Weir, for the user agent. */
  readonly version: string;
  /** Told of each attempt that is over. */
  readonly onAttempt?: ((report: AttemptReport) => void) | undefined;
  /** Called around each step of an attempt; what it throws is a fault of the step. */
  readonly at?: AttemptSteps | undefined;
  /**
   * Prolongs the other claims that this process has on the store; asked before any that ended are taken back, which is
   * put off when it answers false.
   */
  readonly keepOtherClaims?: (() => Promise<boolean>) | undefined;
}
