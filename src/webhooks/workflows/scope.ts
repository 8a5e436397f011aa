import type { JsonValue } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import { TurnMemo } from "../../base/turn.ts";
import type { Execution } from "../model/records.ts";
import type { TemplateRoot, TemplateScope } from "../model/template.ts";
import { timeText } from "../../base/rfc3339.ts";

/**
 * The values that the steps of one execution may read. Texts are parsed when they are read, and their values are dropped at the end
 * of the turn: a value takes many times the memory of its text, and a step may wait for long.
 */
export class WorkflowScope implements TemplateScope {
  readonly #execution: Execution;
  readonly #env: Readonly<Record<string, string>>;
  readonly #results = new Map<string, string>();
  /** By their texts. */
  readonly #values = new TurnMemo<string, JsonText>();
  readonly #startedAt: number;

  constructor(execution: Execution, env: Readonly<Record<string, string>>, startedAt: number) {
    this.#execution = execution;
    this.#env = env;
    this.#startedAt = startedAt;
  }

  add(name: string, result: string): void {
    this.#results.set(name, result);
  }

  /** The result of the last step that was not skipped, if any. */
  get last(): string | undefined {
    return [...this.#results.values()].at(-1);
  }

  /** The value below a root. */
  read(root: TemplateRoot, name: string | undefined): JsonValue | undefined {
    switch (root) {
      case "input":
        return this.#value(this.#execution.input);
      case "steps":
        return this.#value(this.#results.get(name ?? ""));
      case "execution": {
        const { event, headers } = this.#execution;
        return {
          id: this.#execution.id,
          workflow: this.#execution.workflow,
          ...(event === undefined ? {} : { event }),
          ...(headers === undefined ? {} : { headers: new JsonText(headers) }),
          createdAt: timeText(this.#execution.createdAt),
          startedAt: timeText(this.#startedAt),
        };
      }
      case "env":
        return name !== undefined && Object.hasOwn(this.#env, name) ? this.#env[name] : undefined;
      default:
        return undefined;
    }
  }

  #value(text: string | undefined): JsonText | undefined {
    if (text === undefined) return undefined;
    return this.#values.get(text, () => new JsonText(text));
  }
}
