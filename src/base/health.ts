/** The health of one component. */
export interface ComponentHealth {
  readonly name: string;
  readonly healthy: boolean;
  /** The cause, for the operator; empty while healthy. */
  readonly reason: string;
}

/** Overall health: healthy when every component is. */
export class Health {
  readonly #components = new Map<string, ComponentHealth>();
  readonly #notes = new Map<string, string>();
  readonly #listeners = new Set<(healthy: boolean) => void>();

  /** Sets one component; notifies listeners when the overall health changes. */
  set(name: string, healthy: boolean, reason = ""): void {
    const before = this.healthy;
    this.#components.set(name, { name, healthy, reason: healthy ? "" : reason });
    const after = this.healthy;
    if (before === after) return;
    for (const listener of [...this.#listeners]) listener(after);
  }

  /** Sets a note about a component that is healthy; an empty text removes it. */
  note(name: string, text: string): void {
    if (text === "") this.#notes.delete(name);
    else this.#notes.set(name, text);
  }

  /** Healthy components that have a note, with the note as their reason. */
  noted(): ComponentHealth[] {
    return [...this.#components.values()].flatMap((component) => {
      const reason = this.#notes.get(component.name);
      return component.healthy && reason !== undefined ? [{ ...component, reason }] : [];
    });
  }

  /** Whether all components are healthy. */
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
