import type { Entry, RateLimitRequest } from "../ratelimit/request.ts";
import { InvalidRequestError } from "../ratelimit/errors.ts";
import {
  explain,
  type ExplainedDescriptor,
  type ExplainedLimit,
  type Explanation,
} from "../ratelimit/forecast/explain.ts";
import type { WalkedLevel } from "../ratelimit/forecast/explain_walk.ts";
import type { LimitAmount } from "../ratelimit/decision/limit_amount.ts";
import { PLAIN_POLICY } from "../ratelimit/decision/policy.ts";
import { validateRequest } from "../ratelimit/decision/validate.ts";
import { quotasRefused } from "../settings/rule_support.ts";
import {
  type CommandOptions,
  errorsExitCode,
  type GivenCommand,
  type GivenFlags,
  type RunnableCommand,
} from "./command.ts";
import { bucketsOf, printBuckets } from "./explain_buckets.ts";
import { FlagError } from "./flags.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { plainText } from "./plain_text.ts";
import { backendOf, MERGE_FLAG, readRuleFolder, ruleFolder, settingsFor } from "./rule_folder.ts";

/** `weir explain`: explains a decision by the rule files alone. */
export const EXPLAIN_COMMAND: RunnableCommand = {
  command: {
    words: "explain",
    args: [],
    doc: "show which rule applies to each descriptor, and why the others do not",
    flags: {
      config: { value: "DIR", doc: "folder of the rule files (required)" },
      domain: { value: "NAME", doc: "domain of the rules (required)" },
      descriptors: {
        value: "LIST",
        repeated: true,
        doc: "one descriptor: key=value,key=value; a value cannot contain a comma",
      },
      bucket: {
        value: "LIST",
        repeated: true,
        doc: "one bucket of a quota, in place of --descriptors: key=value,key=value, in any order",
      },
      merge: MERGE_FLAG,
      prefix: { value: "TEXT", doc: "prefix of cache keys (default $CACHE_KEY_PREFIX)" },
      ...OUTPUT_FLAGS,
    },
    notes:
      "Like the service, it reads USE_CALENDAR_MONTH_RATE_LIMIT from the environment; with --bucket, also\n" +
      "SHADOW_MODE and BACKEND_TYPE.",
    exitCodes: { 0: "explained", 1: "the rule files have errors, or the rule of a bucket cannot be a quota" },
  },
  run,
};

async function run({ flags }: GivenCommand, { output, clock, environment }: CommandOptions): Promise<number> {
  const folder = flags.required("config", "explain");
  const printer = printerOf(flags, output);
  const buckets = bucketsOf(flags);
  const request = buckets.length === 0 ? requestOf(flags) : undefined;
  const domain = flags.required("domain", "explain");
  if (request === undefined && flags.texts("descriptors").length > 0) {
    throw new FlagError("Cannot use --bucket with --descriptors");
  }
  const rules = await readRuleFolder(ruleFolder(folder, flags, environment), output);
  if (rules === undefined) return await errorsExitCode(folder);
  if (request === undefined) {
    const { SHADOW_MODE: shadowMode } = settingsFor(environment, ["SHADOW_MODE"]);
    const refused = quotasRefused(backendOf(environment));
    if (refused !== undefined) output.stderr(`warning: ${refused}`);
    return printBuckets(rules, { domain, buckets, shadowMode }, { output, printer });
  }
  const { explanation } = explain(rules, request, {
    nowSeconds: Math.floor(clock.now() / 1_000),
    random: () => 0,
    // The other settings do not affect which rule decides.
    policy: {
      ...PLAIN_POLICY,
      cacheKeyPrefix: flags.text("prefix") ?? environment["CACHE_KEY_PREFIX"] ?? "",
    },
  });
  if (printer !== undefined) printer.print(explanation);
  else for (const line of explanationLines(explanation)) output.stdout(line);
  return 0;
}

function requestOf(flags: GivenFlags): RateLimitRequest {
  const domain = flags.required("domain", "explain");
  const descriptors = flags.descriptors().map((entries) => ({ entries }));
  if (descriptors.length === 0) {
    throw new FlagError('Cannot run "explain": --descriptors or --bucket is missing');
  }
  const request: RateLimitRequest = { domain, descriptors, hitsAddend: 1 };
  try {
    validateRequest(request);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new FlagError(`Invalid request: ${error.message}`, { cause: error });
  }
  return request;
}

/** An explanation as lines for people, in plain text. */
function explanationLines(explanation: Explanation): string[] {
  const { domain, at, descriptors } = explanation;
  const blocks = descriptors.flatMap((descriptor, index) => ["", ...descriptorLines(descriptor, index)]);
  return [`domain ${domain} at ${at}`, ...blocks].map(plainText);
}

function descriptorLines(descriptor: ExplainedDescriptor, index: number): string[] {
  const { entries, levels, windows } = descriptor;
  const counters = (windows ?? [descriptor]).flatMap(counterLines);
  return [
    `descriptor ${index}: ${entries.map(entryText).join(",")}`,
    ...levels.flatMap(levelLines),
    ...resultLines(descriptor),
    ...counters,
  ];
}

function counterLines(
  { cacheKey, windowEnds }: Pick<ExplainedDescriptor, "cacheKey" | "windowEnds">,
): string[] {
  return [
    ...(cacheKey === undefined ? [] : [`  cache key    ${cacheKey}`]),
    ...(windowEnds === undefined ? [] : [`  window ends  ${windowEnds}`]),
  ];
}

function levelLines(
  { entry, rules, furtherRules, otherKeys, furtherKeys }: WalkedLevel,
  index: number,
): string[] {
  const width = Math.max(0, ...rules.map(({ rule }) => rule.length));
  const rows = rules.map(({ rule, chosen, why }) =>
    `    ${chosen ? ">" : "-"} ${rule.padEnd(width)}  ${why}`
  );
  if (furtherRules > 0) rows.push(`    - and ${furtherRules} more with this key`);
  if (otherKeys.length > 0) {
    const more = furtherKeys > 0 ? ` and ${furtherKeys} more` : "";
    rows.push(`    - other keys of this level: ${otherKeys.join(", ")}${more}`);
  }
  return [`  level ${index + 1}: ${entryText(entry)}`, ...rows];
}

function resultLines({ outcome, why, limit, windows, replacedBy = [] }: ExplainedDescriptor): string[] {
  switch (outcome) {
    case "none":
      return [`  no limit     ${why}`];
    case "replaced": {
      const by = replacedBy.map(({ descriptor, rule }) => `${rule} of descriptor ${descriptor}`).join(", ");
      return [`  no limit     ${limit?.rule ?? ""} does not apply: ${by} replaces "${limit?.name ?? ""}"`];
    }
    case "unlimited":
      return [`  unlimited    ${limit?.rule ?? ""}: nothing is counted`];
    case "limited":
      return limit === undefined ? [] : [
        ...(windows ?? [limit]).map((window) => `  limit        ${amountOf(window, limit.name)}`),
        `  rule         ${limit.rule ?? "none: the limit is part of the request"}`,
        ...remarksOf(limit),
      ];
  }
}

function amountOf(limit: LimitAmount, name: string | undefined): string {
  const { requestsPerUnit = 0, unit, windowSeconds, timezone, algorithm, burst } = limit;
  const named = name === undefined ? "" : `, named "${name}"`;
  switch (algorithm) {
    case "concurrency":
      return `${limit.maxInFlight ?? 0} in flight (a lease of ${limit.leaseSeconds} s${
        limit.identifiedBy === undefined ? "" : `, identified by ${limit.identifiedBy}`
      })${named}`;
    case "token_bucket":
      return `${requestsPerUnit} per ${unit ?? ""} (a token bucket of ${burst}, ${windowSeconds} s)${named}`;
    case "sliding_window":
      return `${requestsPerUnit} per ${unit ?? ""} (a sliding window of ${windowSeconds} s)${named}`;
  }
  if (timezone !== undefined) {
    return `${requestsPerUnit} per ${
      unit ?? ""
    } (a calendar window of ${windowSeconds} s in ${timezone})${named}`;
  }
  return `${requestsPerUnit} per ${unit ?? ""} (a window of ${windowSeconds} s)${named}`;
}

function remarksOf({ shadowMode, quotaMode, replaces, events = [], eventsRedact }: ExplainedLimit): string[] {
  const lines: string[] = [];
  if (shadowMode) lines.push("  shadow mode  it is counted, and answered as OK");
  if (quotaMode) lines.push("  quota mode   the call is over its limit only when all its quotas are");
  if (replaces.length > 0) lines.push(`  replaces     ${replaces.join(", ")}`);
  if (events.length > 0) {
    const values = eventsRedact === undefined ? "" : ` (values: ${eventsRedact})`;
    lines.push(`  events       ${events.join(", ")}${values}`);
  }
  return lines;
}

function entryText({ key, value }: Entry): string {
  return value === "" ? key : `${key}=${value}`;
}
