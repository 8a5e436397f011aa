import { type JsonObject, type JsonValue, parseJson } from "../../base/exact_json.ts";
import type { Execution } from "../model/records.ts";
import type { TemplateRoot, TemplateScope } from "../model/template.ts";
import { timeText } from "../../base/rfc3339.ts";

/**
 * What the steps of one execution may read. Texts become values when they are read, and values are dropped with the end
 * of the turn: a value takes many times the memory of its text, and a step may wait for long.
 */
export class WorkflowScope implements TemplateScope {
  readonly #execution: Execution;
  readonly #env: Readonly<Record<string, string>>;
  /** Results by the name of their step. */
  readonly #results = new Map<string, string>();
  /** By their texts. */
  readonly #values = new Map<string, JsonValue>();
  readonly #startedAt: number;

  constructor(execution: Execution, env: Readonly<Record<string, string>>, startedAt: number) {
    this.#execution = execution;
    this.#env = env;
    this.#startedAt = startedAt;
  }

  /** Adds the result of a step, a text of JSON. */
  add(name: string, result: string): void {
    this.#results.set(name, result);
  }

  /** The value below a root; nothing where it is not there. */
  read(root: TemplateRoot, name: string | undefined): JsonValue | undefined {
    switch (root) {
      case "input":
        return this.#value(this.#execution.input);
      case "steps":
        return name === undefined ? undefined : this.#result(name);
      case "execution":
        return this.#facts();
      case "env":
        return name !== undefined && Object.hasOwn(this.#env, name) ? this.#env[name] : undefined;
    }
  }

  #result(name: string): JsonValue | undefined {
    const text = this.#results.get(name);
    return text === undefined ? undefined : this.#value(text);
  }

  #value(text: string): JsonValue {
    const known = this.#values.get(text);
    if (known !== undefined) return known;
    if (this.#values.size === 0) queueMicrotask(() => this.#values.clear());
    const value = parseJson(text);
    this.#values.set(text, value);
    return value;
  }

  #facts(): JsonObject {
    const { id, workflow, createdAt } = this.#execution;
    return { id, workflow, createdAt: timeText(createdAt), startedAt: timeText(this.#startedAt) };
  }
}
