import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import type { ServiceParts } from "./parts.ts";

/** Decisions while the cache fails, unless their rule says otherwise. */
const MEANWHILE: Readonly<Record<CacheFailureMode, string>> = {
  error: "calls fail",
  allow: "hits are allowed",
  deny: "hits are denied",
  local: "every instance counts for itself",
};

/** Decisions while the cache fails, in words. */
export function meanwhile(
  { CACHE_ON_FAILURE: mode }: Pick<ServiceParts["settings"], "CACHE_ON_FAILURE">,
): string {
  return `meanwhile ${MEANWHILE[mode]} (CACHE_ON_FAILURE=${mode})`;
}

/** Most causes that are shown: a cluster may have a thousand nodes. */
const MAX_CAUSES = 5;

/**
 * The component `cache`: degraded while one of its connections is missing, and failing without an active connection, where
 * the settings require one.
 */
export class CacheHealth {
  readonly #parts: Pick<ServiceParts, "settings" | "health">;
  readonly #isUsable: () => boolean;
  /** Why something is missing, by its name. */
  readonly #causes = new Map<string, string>();
  /** The connections among them. */
  readonly #lost = new Set<string>();

  /** `isUsable`: whether an active connection is left; when absent, all of them are needed. */
  constructor(
    parts: Pick<ServiceParts, "settings" | "health">,
    isUsable: () => boolean = () => this.#lost.size === 0,
  ) {
    this.#parts = parts;
    this.#isUsable = isUsable;
    this.#setHealth(false, "no connection yet");
  }

  /** Notes a connection that is not made yet. */
  expect(name: string, cause: string): void {
    this.#lost.add(name);
    this.note(name, cause);
    this.#setHealth(this.#isUsable(), this.#reason());
  }

  /** Notes a connection that was made, or that is missing. */
  report(name: string, isConnected: boolean, reason: string): void {
    if (isConnected) this.#lost.delete(name);
    else this.#lost.add(name);
    this.note(name, isConnected ? undefined : reason);
    this.#setHealth(this.#isUsable(), this.#reason());
  }

  /** Notes why a node of a cluster has no connection; nothing when it has one. */
  noteNode(name: string, node: string, reason: string | undefined): void {
    const cause = reason === undefined ? undefined : `no connection to node ${node}: ${reason}`;
    this.note(`node ${name}`, cause);
  }

  /** Notes what else is missing; nothing when it no longer is. */
  note(name: string, cause: string | undefined): void {
    if (cause === undefined) this.#causes.delete(name);
    else this.#causes.set(name, cause);
    const words = meanwhile(this.#parts.settings);
    const causes = [...new Set(this.#causes.values())].map((each) => `${each}; ${words}`);
    const more = causes.length - MAX_CAUSES;
    const shown = more > 0 ? [...causes.slice(0, MAX_CAUSES), `${more} more causes`] : causes;
    this.#parts.health.degrade("cache", shown);
  }

  /** Two caches at one address may have the same cause. */
  #reason(): string {
    return [...new Set(this.#causes.values())].join("; ");
  }

  #setHealth(isHealthy: boolean, reason: string): void {
    const { settings, health } = this.#parts;
    if (settings.KV_HEALTH_CHECK_ACTIVE_CONNECTION) health.set("cache", isHealthy, reason);
  }
}
