import type { RulesProvider } from "../../src/config/provider.ts";
import { type RulesLoader, startRules } from "../../src/config/rules_loader.ts";
import { Health } from "../../src/base/health.ts";
import type { LogFields, Logger } from "../../src/base/log.ts";
import { FakeClock } from "./fake_clock.ts";

/** Everything that a loader did, in order. */
export class RulesStory {
  readonly lines: string[] = [];
  readonly health = new Health();
  requiresRules = true;

  /** Writes its lines down. */
  get logger(): Logger {
    const line = (level: string) => (message: string, { errors }: LogFields = {}) => {
      this.lines.push(`${level}: ${message}${errors === undefined ? "" : ` errors=${errors}`}`);
    };
    return { debug: line("debug"), info: line("info"), warning: line("warning"), error: line("error") };
  }

  /** What happened since the last look. */
  take(): string[] {
    return this.lines.splice(0);
  }

  /** Starts a loader whose deeds are written down. */
  start(
    provider: RulesProvider,
    clock = new FakeClock(1_000),
    mergeDomains = false,
    applied: Promise<void> | undefined = undefined,
  ): RulesLoader {
    const { logger } = this;
    return startRules({
      provider,
      mergeDomains,
      onRules: ({ rules, version }) => {
        this.lines.push(`rules: ${[...rules.domains.keys()].join(" ")} ${version}`);
        return applied;
      },
      counters: {
        loadSucceeded: () => void this.lines.push("succeeded"),
        loadFailed: () => void this.lines.push("failed"),
      },
      health: this.health,
      requiresRules: this.requiresRules,
      logger,
      clock,
    });
  }
}
