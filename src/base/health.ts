/** The health of one component. */
export interface ComponentHealth {
  readonly name: string;
  readonly healthy: boolean;
  /** The cause, for the operator; empty while healthy. */
  readonly reason: string;
}

/** All states, the best first: `degraded` still serves, `failing` should receive no traffic. */
export const HEALTH_STATES = ["ok", "degraded", "failing"] as const;

/** Overall health. */
export type HealthState = typeof HEALTH_STATES[number];

/** Overall health: failing while a component fails, degraded while one has a cause to be. */
export class Health {
  readonly #components = new Map<string, ComponentHealth>();
  readonly #causes = new Map<string, readonly string[]>();
  readonly #listeners = new Set<(healthy: boolean) => void>();

  /** Sets one component; notifies listeners when the overall health changes. */
  set(name: string, healthy: boolean, reason = ""): void {
    const before = this.healthy;
    this.#components.set(name, { name, healthy, reason: healthy ? "" : reason });
    const after = this.healthy;
    if (before === after) return;
    for (const listener of [...this.#listeners]) listener(after);
  }

  /** Sets why a component that still works is degraded; without a cause it is not. */
  degrade(name: string, causes: readonly string[]): void {
    if (causes.length === 0) this.#causes.delete(name);
    else this.#causes.set(name, causes);
  }

  /** The causes of degraded components, one by one, without those of components that fail. */
  degraded(): ComponentHealth[] {
    return [...this.#causes].flatMap(([name, causes]) => {
      if (this.#components.get(name)?.healthy === false) return [];
      return causes.map((reason) => ({ name, healthy: true, reason }));
    });
  }

  get state(): HealthState {
    if (!this.healthy) return "failing";
    return this.degraded().length > 0 ? "degraded" : "ok";
  }

  /** True when no component fails. */
  get healthy(): boolean {
    return this.failing().length === 0;
  }

  /** The unhealthy components, in the order in which they were first set. */
  failing(): ComponentHealth[] {
    return [...this.#components.values()].filter((component) => !component.healthy);
  }

  /** Calls `listener` at every change of the overall health; the returned function ends that. */
  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
