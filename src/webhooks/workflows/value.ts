import { described, isNull, scalarType, shown } from "../../yaml/scalar.ts";
import type { YamlScalar, YamlValue } from "../../yaml/value.ts";
import { type JsonValue, parseJson } from "../../base/exact_json.ts";
import type { ValueTemplate } from "../model/template.ts";
import type { ReadTemplate, WorkflowLog } from "./fields.ts";

/** The values that templates read. */
export interface ValueReading {
  readonly log: WorkflowLog;
  readonly read: ReadTemplate;
}

const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/;
const PREFIXED = /^0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)$/;

/** A JSON value from YAML, with templates in its texts. Numbers keep their digits, and keys their order. */
export function readValue(value: YamlValue, path: string, reading: ValueReading): ValueTemplate {
  switch (value.kind) {
    case "scalar":
      return readScalar(value, path, reading);
    case "list": {
      const items = value.items.map((item, index) => readValue(item, `${path}[${index}]`, reading));
      const values = items.flatMap((item) => item.kind === "value" ? [item.value] : []);
      return values.length < items.length ? { kind: "list", items } : { kind: "value", value: values };
    }
    case "mapping": {
      const entries = [...value.entries].map(([key, { offset, value: below }]) => {
        const text = `a key cannot contain a template; write a name instead of '${shown(key)}'`;
        if (key.includes("{{")) reading.log.error(offset, path, text);
        return [key, readValue(below, `${path}.${shown(key)}`, reading)] as const;
      });
      return { kind: "object", entries };
    }
    case "broken":
      return NOTHING;
  }
}

const NOTHING: ValueTemplate = { kind: "value", value: null };

function readScalar(scalar: YamlScalar, path: string, { log, read }: ValueReading): ValueTemplate {
  const { text, offset } = scalar;
  if (isNull(scalar)) return NOTHING;
  const type = scalarType(scalar);
  if (type === "boolean") return { kind: "value", value: text.toLowerCase() === "true" };
  if (type === "number") {
    const value = numberOf(text);
    if (value !== undefined) return { kind: "value", value };
    const problem = `${described(scalar)} is not a JSON number; put it in quotes, or write it plainly`;
    log.error(offset, path, problem);
    return NOTHING;
  }
  const template = read(text, offset, path);
  const [first] = template ?? [];
  if (template === undefined) return NOTHING;
  const isPlain = template.length === 1 && typeof first === "string";
  return isPlain ? { kind: "value", value: first } : { kind: "text", template };
}

function numberOf(text: string): JsonValue | undefined {
  if (JSON_NUMBER.test(text)) return parseJson(text);
  return PREFIXED.test(text) ? Number(text) : undefined;
}
