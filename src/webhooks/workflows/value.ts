import { described, isNull, scalarType, shown } from "../../yaml/scalar.ts";
import type { YamlScalar, YamlValue } from "../../yaml/value.ts";
import { type JsonValue, parseJson } from "../../base/exact_json.ts";
import type { TextTemplate, ValueTemplate } from "../model/template.ts";
import type { WorkflowLog } from "./fields.ts";

/** Reads the templates of a text that stands at this place; nothing where they are wrong, which is then logged. */
export type ReadTemplate = (text: string, offset: number, path: string) => TextTemplate | undefined;

/** What reading a value needs beside the value. */
export interface ValueReading {
  readonly log: WorkflowLog;
  readonly read: ReadTemplate;
}

const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/;
const PREFIXED = /^0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)$/;

/** A value of JSON as a file of YAML writes it, with templates in its texts; numbers keep their digits. */
export function readValue(value: YamlValue, path: string, reading: ValueReading): ValueTemplate {
  switch (value.kind) {
    case "scalar":
      return readScalar(value, path, reading);
    case "list":
      return joined(
        value.items.map((item, index) =>
          [String(index), readValue(item, `${path}[${index}]`, reading)] as const
        ),
        true,
      );
    case "mapping":
      return joined(
        [...value.entries].map(([key, entry]) => {
          const below = `${path}.${shown(key)}`;
          if (key.includes("{{")) {
            reading.log.error(
              entry.offset,
              path,
              `a template cannot stand in the key '${shown(key)}'; write a name`,
            );
          }
          return [key, readValue(entry.value, below, reading)] as const;
        }),
        false,
      );
    case "broken":
      return NOTHING;
  }
}

const NOTHING: ValueTemplate = { kind: "value", value: null };

/** Values without templates become one, so that they are made once and not at each step. */
function joined(entries: readonly (readonly [string, ValueTemplate])[], isList: boolean): ValueTemplate {
  const values = entries.flatMap(([key, template]) =>
    template.kind === "value" ? [[key, template.value] as const] : []
  );
  if (values.length < entries.length) {
    return isList ? { kind: "list", items: entries.map(([, item]) => item) } : { kind: "object", entries };
  }
  const value = isList ? values.map(([, item]) => item) : Object.fromEntries(values);
  return { kind: "value", value };
}

function readScalar(scalar: YamlScalar, path: string, { log, read }: ValueReading): ValueTemplate {
  const { text, offset } = scalar;
  if (isNull(scalar)) return NOTHING;
  const type = scalarType(scalar);
  if (type === "boolean") return { kind: "value", value: text.toLowerCase() === "true" };
  if (type === "number") {
    const value = numberOf(text);
    if (value !== undefined) return { kind: "value", value };
    log.error(
      offset,
      path,
      `${described(scalar)} is no number of JSON; put it in quotes, or write it plainly`,
    );
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
