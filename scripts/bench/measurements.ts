import type { AlgorithmSpeed } from "./algorithms.ts";
import type { ClientTime } from "./client_time.ts";
import type { DecisionTime } from "./decision_time.ts";
import type { MillionOutcome } from "./million.ts";
import type { Machine, Versions } from "./machine.ts";
import type { EngineName } from "./options.ts";
import type { PostgresOutcome } from "./postgres.ts";
import type { QuotaCost } from "./quota_cost.ts";
import type { ReloadOutcome } from "./reload.ts";
import type { Summary } from "./report.ts";
import type { Round } from "./round.ts";
import type { StartOutcome } from "./start_time.ts";
import type { WebhookOutcome } from "./webhooks.ts";

/** The measurements of one run; a part that was not measured is absent. */
export interface Measurements {
  readonly summaries: readonly Summary[];
  readonly algorithms?: readonly AlgorithmSpeed[] | undefined;
  readonly decisions?: readonly DecisionTime[] | undefined;
  readonly million?: MillionOutcome | undefined;
  readonly reload?: ReloadOutcome | undefined;
  readonly quotas?: QuotaCost | undefined;
  readonly start?: StartOutcome | undefined;
  /** The same with every feature on. */
  readonly featureStart?: StartOutcome | undefined;
  readonly client?: readonly ClientTime[] | undefined;
  readonly webhooks?: WebhookOutcome | undefined;
  readonly postgres?: PostgresOutcome | undefined;
}

/** One line of the targets: what was to be reached, and what was. */
export interface TargetRow {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  readonly isHit: boolean;
  /** By which share of its bound it was missed. */
  readonly missedBy?: number | undefined;
}

/** Everything that `latest.json` holds. */
export interface BenchResults extends Measurements {
  readonly date: string;
  readonly commandLine: string;
  readonly machine: Machine;
  readonly versions: Versions;
  readonly setup: {
    readonly engine: EngineName;
    readonly rounds: number;
    readonly seconds: number;
    readonly warmUpSeconds: number;
  };
  readonly targets: readonly TargetRow[];
  readonly checks: readonly string[];
  readonly rounds: readonly Round[];
}
