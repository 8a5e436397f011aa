import { errorText } from "../base/error_text.ts";
import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Position, Problem } from "../base/problem.ts";
import { decodeRateLimitConfig, type WireRateLimitConfig, type WireRule } from "../wire/rate_limit_config.ts";
import type { WireAny, WireDiscoveryResponse } from "../wire/discovery.ts";
import type { RulesLoad } from "./provider.ts";
import { readRateLimitConfig } from "./xds_sources.ts";
import { shown } from "../yaml/scalar.ts";

/** The type of the resources that rules come in. */
export const RATE_LIMIT_CONFIG_URL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/** More rules than a message of ordinary size can hold; the memory of this process has to do for all. */
const MAX_RULES = 500_000;

/** Whether this names the type of our resources, whatever stands before its slash. */
export function isRateLimitConfig(typeUrl: string): boolean {
  return messageName(typeUrl) === messageName(RATE_LIMIT_CONFIG_URL);
}

/** What a response says: all rules there are. A resource that cannot be read is a problem. */
export function readResources({ resources, versionInfo }: WireDiscoveryResponse): RulesLoad {
  const sources: DomainSource[] = [];
  const problems: Problem[] = [];
  const names = new Set<string>();
  let left = MAX_RULES;
  for (const [index, resource] of resources.entries()) {
    const number = `${index + 1} of ${resources.length}`;
    const config = decode(resource, `resource ${number}`, problems);
    if (config === undefined) continue;
    const at = positionOf(config.name, number, names);
    left -= countRules(config.descriptors);
    if (left < 0) {
      problems.push(error(at, `expected at most ${MAX_RULES} rules in all resources; use fewer`));
      break;
    }
    const reading = readRateLimitConfig(config, at);
    sources.push(reading.source);
    problems.push(...reading.problems);
  }
  return { sources, problems, version: versionInfo };
}

function decode(
  { typeUrl, value }: WireAny,
  at: Position,
  problems: Problem[],
): WireRateLimitConfig | undefined {
  if (!isRateLimitConfig(typeUrl)) {
    const text = `expected the type ${RATE_LIMIT_CONFIG_URL}, got ${JSON.stringify(shown(typeUrl))}`;
    problems.push(error(at, text));
    return undefined;
  }
  try {
    return decodeRateLimitConfig(value);
  } catch (cause) {
    problems.push(error(at, errorText(cause)));
    return undefined;
  }
}

/** A name that says nothing, or was there before, is told apart by the place in the list. */
function positionOf(name: string, number: string, names: Set<string>): Position {
  const isClear = name !== "" && !names.has(name);
  names.add(name);
  const text = `resource ${JSON.stringify(shown(name))}`;
  return isClear ? text : `${text} (${number})`;
}

function countRules(rules: readonly WireRule[]): number {
  return rules.reduce((sum, rule) => sum + 1 + countRules(rule.descriptors), 0);
}

function messageName(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
}

function error(at: Position, text: string): Problem {
  return { severity: "error", at, path: "", text };
}
