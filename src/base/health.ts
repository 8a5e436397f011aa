/** A component whose health counts, and why it is not well. */
export interface ComponentHealth {
  readonly name: string;
  readonly healthy: boolean;
  /** What is wrong, for the operator; empty while healthy. */
  readonly reason: string;
}

/** Health of the whole: healthy only when every component is. */
export class Health {
  readonly #components = new Map<string, ComponentHealth>();
  readonly #notes = new Map<string, string>();
  readonly #listeners = new Set<(healthy: boolean) => void>();

  /** Sets one component; listeners hear of it when the health of the whole changed. */
  set(name: string, healthy: boolean, reason = ""): void {
    const before = this.healthy;
    this.#components.set(name, { name, healthy, reason: healthy ? "" : reason });
    const after = this.healthy;
    if (before === after) return;
    for (const listener of [...this.#listeners]) listener(after);
  }

  /** Says something about a component that its operator should know while it is healthy; an empty text takes it back. */
  note(name: string, text: string): void {
    if (text === "") this.#notes.delete(name);
    else this.#notes.set(name, text);
  }

  /** The healthy components about which there is something to be said. */
  noted(): ComponentHealth[] {
    return [...this.#components.values()].flatMap((component) => {
      const reason = this.#notes.get(component.name);
      return component.healthy && reason !== undefined ? [{ ...component, reason }] : [];
    });
  }

  /** Whether every component is healthy. */
  get healthy(): boolean {
    return this.failing().length === 0;
  }

  /** The components that are not healthy, in the order they became known. */
  failing(): ComponentHealth[] {
    return [...this.#components.values()].filter((component) => !component.healthy);
  }

  /** Calls `listener` at every change of the whole; the answer ends that. */
  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
