import { errorText } from "../base/error_text.ts";
import type {
  DescriptorSource,
  DomainSource,
  JsonObject,
  RateLimitSource,
} from "../ratelimit/rule_source.ts";
import type { Position, Problem } from "../base/problem.ts";
import {
  RATE_LIMIT_CONFIG,
  type WirePolicy,
  type WireRateLimitConfig,
  type WireRule,
} from "../wire/rate_limit_config.ts";
import type { WireAny, WireDiscoveryResponse } from "../wire/discovery.ts";
import type { RulesLoad } from "./provider.ts";
import { shown } from "../yaml/scalar.ts";
import { type Unit, UNIT_NAMES, unitOfNumber } from "../ratelimit/units.ts";
import type { WireStruct, WireValue } from "../wire/struct.ts";
import { metadataOf } from "./metadata_reader.ts";
import { MAX_PROBLEMS } from "../yaml/problem_log.ts";
import { pathOf } from "../yaml/field_reader.ts";

/** The resource type of rules. */
export const RATE_LIMIT_CONFIG_URL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/** Protects memory; a message of ordinary size holds fewer rules. */
const MAX_RULES = 500_000;

/** True if the URL names our resource type, with any prefix. */
export function isRateLimitConfig(typeUrl: string): boolean {
  return messageName(typeUrl) === messageName(RATE_LIMIT_CONFIG_URL);
}

/** The rules of a response; a resource that cannot be read is a problem. */
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
    return RATE_LIMIT_CONFIG.decode(value);
  } catch (cause) {
    problems.push(error(at, errorText(cause)));
    return undefined;
  }
}

/** Names a resource; an empty or repeated name is completed by its number. */
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

/** The rules of one resource and its problems. */
interface ResourceReading {
  readonly source: DomainSource;
  readonly problems: readonly Problem[];
}

/** Converts a resource to the form of a rule file; `at` is the position of every problem. */
function readRateLimitConfig(config: WireRateLimitConfig, at: Position): ResourceReading {
  const log = new ResourceLog(at);
  const descriptors = readRules(log, config.descriptors, "");
  return { source: { at, domain: config.domain, descriptors }, problems: log.problems };
}

/** Collects the problems of one resource up to a limit. */
class ResourceLog {
  readonly at: Position;
  readonly #problems: Problem[] = [];
  #leftOut = 0;

  constructor(at: Position) {
    this.at = at;
  }

  add(severity: Problem["severity"], path: string, text: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push({ severity, at: this.at, path, text });
    else this.#leftOut++;
  }

  get problems(): Problem[] {
    if (this.#leftOut === 0) return this.#problems;
    const text = `${this.#leftOut} more problems are not shown; correct these first`;
    return [...this.#problems, { severity: "error", at: this.at, path: "", text }];
  }
}

function readRules(log: ResourceLog, rules: readonly WireRule[], path: string): DescriptorSource[] {
  return rules.map((rule, index) => readRule(log, rule, `${pathOf(path, "descriptors")}[${index}]`));
}

function readRule(log: ResourceLog, rule: WireRule, path: string): DescriptorSource {
  const { rateLimit, metadata } = rule;
  return {
    at: log.at,
    path,
    key: rule.key,
    value: rule.value,
    rateLimit: rateLimit === undefined ? undefined : readPolicy(log, rateLimit, `${path}.rate_limit`),
    shadowMode: rule.shadowMode,
    quotaMode: rule.quotaMode,
    detailedMetric: rule.detailedMetric,
    metadata: metadata === undefined ? undefined : readMetadata(log, metadata, `${path}.metadata`),
    descriptors: readRules(log, rule.descriptors, path),
    // The message has no fields for these.
    onCacheFailure: undefined,
    valueToMetric: false,
    shareThreshold: false,
    identifies: false,
  };
}

function readPolicy(log: ResourceLog, policy: WirePolicy, path: string): RateLimitSource | undefined {
  const { unlimited, requestsPerUnit, name } = policy;
  const unit = readUnit(log, policy, `${path}.unit`);
  if (!unlimited && unit === undefined) return undefined;
  const replaces = policy.replaces.map((one, index) => ({
    at: log.at,
    path: `${path}.replaces[${index}]`,
    name: one.name,
  }));
  return { at: log.at, path, unlimited, unit, requestsPerUnit, unitMultiplier: 1, name, replaces };
}

function readUnit(log: ResourceLog, { unit: number, unlimited }: WirePolicy, path: string): Unit | undefined {
  const unit = unitOfNumber(number);
  if (unlimited) {
    if (unit !== undefined) {
      log.add("error", path, "should not specify rate limit unit when unlimited; remove unit, or unlimited");
    } else if (number !== 0) {
      log.add("warning", path, `rate limit unit ${number} has no effect with unlimited; remove it`);
    }
    return undefined;
  }
  if (unit === undefined) {
    const text = number === 0 ? "UNKNOWN" : String(number);
    log.add("error", path, `invalid rate limit unit '${text}'; expected one of ${UNIT_NAMES.join(", ")}`);
  }
  return unit;
}

function readMetadata(log: ResourceLog, struct: WireStruct, path: string): JsonObject | undefined {
  const error = (_: WireValue, at: string, text: string) => log.add("error", at, text);
  return metadataOf<WireValue>(Object.entries(struct), path, {
    error,
    open(value, at) {
      if (typeof value === "number" && !Number.isFinite(value)) {
        return void error(value, at, `expected a finite number, got ${value}; send it as a text`);
      }
      if (typeof value !== "object" || value === null) return { json: value };
      return isList(value) ? { items: value } : { entries: Object.entries(value) };
    },
  });
}

function isList(value: WireValue): value is readonly WireValue[] {
  return Array.isArray(value);
}
