import { type Descriptor, parseDescriptorText, type RateLimitRequest } from "../ratelimit/request.ts";
import { InvalidRequestError } from "../ratelimit/errors.ts";
import { explain } from "../ratelimit/explain.ts";
import { PLAIN_POLICY } from "../ratelimit/policy.ts";
import { validateRequest } from "../ratelimit/validate.ts";
import type { GivenCommand, GivenFlags, RunnableCommand } from "./command.ts";
import type { CommandOptions } from "./command_input.ts";
import { explanationLines } from "./explain_lines.ts";
import { FlagError } from "./flags.ts";
import { MERGE_FLAG, readRuleFolder, ruleFolder } from "./rule_folder.ts";

/** `weir explain`: why a request is decided as it is, by the rule files alone. */
export const EXPLAIN_COMMAND: RunnableCommand = {
  command: {
    words: "explain",
    args: [],
    doc: "tells which rule decides for each descriptor, and why the others do not",
    flags: {
      config: { value: "DIR", doc: "folder of the rule files" },
      domain: { value: "NAME", doc: "domain of the rules" },
      descriptors: {
        value: "LIST",
        repeated: true,
        doc: "one descriptor: comma-separated key=value pairs",
      },
      merge: MERGE_FLAG,
      prefix: { value: "TEXT", doc: "what stands before cache keys (default $CACHE_KEY_PREFIX)" },
      json: { doc: "print it as JSON" },
    },
    notes: "exit code: 0 explained, 1 the rule files have mistakes, 2 wrong usage",
  },
  run,
};

async function run({ flags }: GivenCommand, { output, clock, environment }: CommandOptions): Promise<number> {
  const folder = wanted(flags, "config");
  const request = requestOf(flags);
  const rules = await readRuleFolder(ruleFolder(folder, flags, environment), output);
  if (rules === undefined) return 1;
  const { explanation } = explain(rules, request, {
    nowSeconds: Math.floor(clock.now() / 1_000),
    random: () => 0,
    // The settings of a service have no say in which rule decides.
    policy: {
      ...PLAIN_POLICY,
      cacheKeyPrefix: flags.text("prefix") ?? environment["CACHE_KEY_PREFIX"] ?? "",
    },
  });
  if (flags.said("json") === true) output.stdout(JSON.stringify(explanation, undefined, 2));
  else for (const line of explanationLines(explanation)) output.stdout(line);
  return 0;
}

function requestOf(flags: GivenFlags): RateLimitRequest {
  const domain = wanted(flags, "domain");
  const lists = flags.texts("descriptors");
  if (lists.length === 0) throw new FlagError("Cannot explain anything: --descriptors is missing");
  const request: RateLimitRequest = { domain, descriptors: lists.map(descriptorOf), hitsAddend: 1 };
  try {
    validateRequest(request);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new FlagError(`Cannot explain such a request: ${error.message}`, { cause: error });
  }
  return request;
}

function descriptorOf(list: string): Descriptor {
  const entries = parseDescriptorText(list);
  if (typeof entries === "string") throw new FlagError(`Cannot use --descriptors "${list}": ${entries}`);
  return { entries };
}

function wanted(flags: GivenFlags, name: string): string {
  const value = flags.text(name) ?? "";
  if (value === "") throw new FlagError(`Cannot explain anything: --${name} is missing`);
  return value;
}
