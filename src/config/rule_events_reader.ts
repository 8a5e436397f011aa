import { LIMIT_EVENTS, type LimitEvent, REDACTIONS, type RuleEvents } from "../ratelimit/rule_events.ts";
import { type FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { described } from "../yaml/scalar.ts";
import type { YamlMapping } from "../yaml/value.ts";

/** The fields of a rule and their positions. */
export interface RulePlace {
  readonly log: ProblemLog;
  readonly mapping: YamlMapping;
  readonly path: string;
  readonly fields: FieldReader;
}

/** Reads `events` and `events_redact`; undefined without events, or when one of them is invalid, which is reported. */
export function readRuleEvents({ log, mapping, path, fields }: RulePlace): RuleEvents | undefined {
  const list = fields.list("events");
  const redact = fields.choice("events_redact", REDACTIONS);
  const events = new Set<LimitEvent>();
  let isValid = !fields.failed("events") && !fields.failed("events_redact");
  for (const [index, item] of list?.items.entries() ?? []) {
    const event = item.kind === "scalar" ? LIMIT_EVENTS.find((known) => known === item.text) : undefined;
    if (event !== undefined && !events.has(event)) {
      events.add(event);
      continue;
    }
    isValid = false;
    if (item.kind === "broken") continue;
    const expected = `expected one of ${LIMIT_EVENTS.join(", ")}${
      event === undefined ? "" : ", each one time"
    }`;
    log.error(item.offset, `${pathOf(path, "events")}[${index}]`, `${expected}; got ${described(item)}`);
  }
  if (!isValid) return undefined;
  if (events.size > 0) {
    const at = log.at(mapping.offset);
    return { at, overLimit: events.has("over_limit"), nearLimit: events.has("near_limit"), redact };
  }
  if (redact !== undefined) {
    const text = "requires events; add events, or remove events_redact";
    log.error(fields.offset("events_redact"), pathOf(path, "events_redact"), text);
  }
  return undefined;
}
