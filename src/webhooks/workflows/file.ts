import type { Position, Problem } from "../../base/problem.ts";
import { readYamlDocument } from "../../yaml/document.ts";
import { described, isNull, shown } from "../../yaml/scalar.ts";
import type { YamlValue } from "../../yaml/value.ts";
import { parseTemplate, pathsOf, type TemplatePath, type TextTemplate } from "../model/template.ts";
import type { Workflow, WorkflowStep } from "../model/workflow.ts";
import { readStepCondition } from "./condition.ts";
import { WorkflowFields, type WorkflowLog } from "./fields.ts";
import { readStep } from "./step_reader.ts";
import type { ValueReading } from "./value.ts";

/** The workflow of a file, and all problems of the file. */
interface WorkflowFile {
  readonly workflow?: Workflow | undefined;
  /** Its id, also when there are errors elsewhere. */
  readonly id?: string | undefined;
  /** The position of its id. */
  readonly at: Position;
  /** The position of each step. */
  readonly stepPositions: readonly Position[];
  readonly problems: readonly Problem[];
}

/** Most bytes of a workflow file. */
export const MAX_FILE_BYTES = 262_144;
const MAX_PARTS = 100_000;
const MAX_STEPS = 100;
const ID = /^[a-z0-9][a-z0-9-]{0,63}$/;
const STEP_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** The fields of the execution that templates may read. */
const EXECUTION_FIELDS = ["id", "workflow", "event", "headers", "createdAt", "startedAt"] as const;

/**
 * Reads a workflow; `name` begins every position. Templates may read the environment variables of `envNames`; any when
 * absent, as in a text that was loaded before.
 */
export function readWorkflowFile(name: string, text: string, envNames?: readonly string[]): WorkflowFile {
  const { root, log } = readYamlDocument(name, text, { maxParts: MAX_PARTS });
  const workflow = readRoot(root, log, envNames);
  const problems = log.problems();
  const isValid = problems.every(({ severity }) => severity !== "error");
  const fields = root?.kind === "mapping" ? root.entries : undefined;
  const steps = fields?.get("steps")?.value;
  return {
    id: workflow?.id,
    at: log.at(fields?.get("workflow")?.offset ?? 0),
    stepPositions: steps?.kind === "list" ? steps.items.map(({ offset }) => log.at(offset)) : [],
    problems,
    workflow: isValid ? workflow : undefined,
  };
}

function readRoot(
  root: YamlValue | undefined,
  log: WorkflowLog,
  envNames: readonly string[] | undefined,
): Workflow | undefined {
  if (root?.kind === "broken" || (root === undefined && log.problems().length > 0)) return undefined;
  if (root === undefined || (root.kind === "scalar" && isNull(root))) {
    log.error(0, "", "the file is empty; begin with 'workflow: a-name'");
    return undefined;
  }
  if (root.kind !== "mapping") {
    log.error(root.offset, "", `expected a mapping with workflow and steps, got ${described(root)}`);
    return undefined;
  }
  const fields = new WorkflowFields(log, root, "", ["workflow", "timeout", "steps"]);
  const id = fields.name("workflow", ID, "a name of a-z, 0-9 and -, at most 64 characters");
  const timeoutMs = fields.duration("timeout", { min: "1ms", max: "30d", absent: "1h" });
  const steps = new StepsReader(log, envNames).read(fields);
  return id === undefined ? undefined : { id, timeoutMs, steps };
}

/** Reads the steps of a workflow in their order, since each may read only those before it. */
class StepsReader {
  readonly #log: WorkflowLog;
  readonly #envNames: readonly string[] | undefined;
  /** The steps before the current one. */
  readonly #before: string[] = [];
  #all: readonly string[] = [];

  constructor(log: WorkflowLog, envNames: readonly string[] | undefined) {
    this.#log = log;
    this.#envNames = envNames;
  }

  read(fields: WorkflowFields): readonly WorkflowStep[] {
    const list = fields.list("steps");
    if (list === undefined || list.items.length === 0) {
      const isReported = list === undefined && fields.has("steps");
      if (!isReported) fields.error("steps", "there are no steps; add a list of at least one under 'steps'");
      return [];
    }
    if (list.items.length > MAX_STEPS) {
      fields.error("steps", `there are more than ${MAX_STEPS} steps; split it into several workflows`);
      return [];
    }
    this.#all = list.items.flatMap(nameOf);
    return list.items.flatMap((item, index) => this.#step(item, `steps[${index}]`));
  }

  #step(item: YamlValue, path: string): readonly WorkflowStep[] {
    if (item.kind === "broken") return [];
    if (item.kind !== "mapping") {
      this.#log.error(item.offset, path, `expected a mapping with a name, got ${described(item)}`);
      return [];
    }
    const fields = new WorkflowFields(this.#log, item, path, [
      "name",
      "if",
      "request",
      "limit",
      "set",
      "retry",
    ]);
    const expected = "a name of letters, digits, - and _, at most 64 characters";
    const name = fields.name("name", STEP_NAME, expected) ?? "";
    if (this.#before.includes(name)) {
      fields.error("name", `the name '${name}' is given to two steps; rename one`);
    }
    const reading: ValueReading = { log: this.#log, read: (...place) => this.#template(...place) };
    const condition = readStepCondition(fields, reading, (path) => this.#pathProblem(path));
    const step = readStep(fields, name, reading);
    this.#before.push(name);
    if (step === undefined) return [];
    return [condition === undefined ? step : { ...step, condition }];
  }

  #template(text: string, offset: number, path: string): TextTemplate | undefined {
    const { template, problem } = parseTemplate(text);
    if (template === undefined) {
      this.#log.error(offset, path, problem);
      return undefined;
    }
    for (const read of pathsOf(template)) {
      const problem = this.#pathProblem(read);
      if (problem !== undefined) {
        this.#log.error(offset, path, `the template '${shown(read.text)}' ${problem}`);
      }
    }
    return template;
  }

  #pathProblem({ root, keys }: TemplatePath): string | undefined {
    const key = keys[0] ?? "";
    switch (root) {
      case "input":
        return undefined;
      case "execution":
        if (
          (keys.length === 1 || key === "headers" && keys.length === 2) &&
          EXECUTION_FIELDS.some((field) => field === key)
        ) return undefined;
        return `reads an unknown field; an execution has ${EXECUTION_FIELDS.join(", ")}`;
      case "env":
        if (keys.length > 1) {
          return "reads a field of an environment variable, which is a text; end it after its name";
        }
        if (this.#envNames === undefined || this.#envNames.includes(key)) return undefined;
        return `reads an environment variable that is not in WORKFLOW_ENV; add ${shown(key)} to it`;
      case "steps":
        if (this.#before.includes(key)) return undefined;
        if (this.#all.includes(key)) {
          return "reads a step that does not come before this one; move that step up";
        }
        return this.#before.length === 0
          ? "reads a step, but this one is the first"
          : `reads an unknown step; those before this one are ${this.#before.map(shown).join(", ")}`;
      default:
        return undefined;
    }
  }
}

function nameOf(item: YamlValue): readonly string[] {
  const name = item.kind === "mapping" ? item.entries.get("name")?.value : undefined;
  return name?.kind === "scalar" ? [name.text] : [];
}
