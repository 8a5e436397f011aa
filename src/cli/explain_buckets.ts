import { explainBucket, type ExplainedBucket } from "../quota/explain_bucket.ts";
import type { Entry } from "../ratelimit/request.ts";
import { bucketProblem } from "../ratelimit/rules/match_bucket.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import type { GivenFlags, Output } from "./command.ts";
import { FlagError } from "./flags.ts";
import type { ValuePrinter } from "./output_format.ts";
import { plainText } from "./plain_text.ts";

/** The buckets of the flag `--bucket`; throws a `FlagError` for one that no client may report. */
export function bucketsOf(flags: GivenFlags): Entry[][] {
  const buckets = flags.descriptors("bucket");
  for (const [index, pairs] of buckets.entries()) {
    const list = flags.texts("bucket")[index] ?? "";
    const problem = bucketProblem(pairs);
    if (problem !== undefined) throw new FlagError(`Invalid --bucket "${list}": ${problem}`);
  }
  return buckets;
}

/** Prints the quotas of buckets; returns the exit code, 1 if a rule cannot be a quota. */
export function printBuckets(
  rules: Rules,
  { domain, buckets, shadowMode }: {
    readonly domain: string;
    readonly buckets: readonly (readonly Entry[])[];
    /** Of all rules. */
    readonly shadowMode: boolean;
  },
  { output, printer }: { readonly output: Output; readonly printer: ValuePrinter | undefined },
): number {
  const explained = buckets.map((pairs) => explainBucket(rules, { domain, pairs, shadowMode }));
  if (printer !== undefined) {
    printer.print({ domain, buckets: explained });
  } else {
    output.stdout(plainText(`domain ${domain}`));
    for (const [index, bucket] of explained.entries()) {
      for (const line of ["", ...bucketLines(bucket, index)]) output.stdout(plainText(line));
    }
  }
  const impossible = explained.filter(({ quota }) => quota.kind === "impossible");
  for (const { rule, why } of impossible) {
    output.stderr(plainText(`${rule?.file ?? ""}:${rule?.line ?? 0}: ${rule?.name ?? ""}: ${why}`));
  }
  return impossible.length === 0 ? 0 : 1;
}

function bucketLines({ pairs, rule, quota, why }: ExplainedBucket, index: number): string[] {
  const place = rule === undefined ? [] : [
    `  rule   ${rule.name}`,
    `  place  ${rule.file}:${rule.line}`,
  ];
  const shown = pairs.map(({ key, value }) => value === "" ? key : `${key}=${value}`).join(",");
  return [`bucket ${index}: ${shown}`, ...place, `  quota  ${quotaText(quota)}: ${why}`];
}

function quotaText(quota: ExplainedBucket["quota"]): string {
  switch (quota.kind) {
    case "rate":
      return `${rounded(quota.perSecond)} per second, at most ${quota.burst} together`;
    case "allow": {
      const { shadowPerSecond } = quota;
      const above = shadowPerSecond === undefined
        ? ""
        : `, and counts those above ${rounded(shadowPerSecond)} per second`;
      return `allows all requests${above}`;
    }
    case "deny":
      return "denies all requests";
    case "impossible":
      return "none";
  }
}

/** With four significant digits, which show a low rate too. */
function rounded(rate: number): string {
  return String(Number(rate.toPrecision(4)));
}
