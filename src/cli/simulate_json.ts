import type { SimulatedStatus } from "../ratelimit/simulation.ts";
import { timeText } from "../base/rfc3339.ts";
import type { FoundDecision, SimulationSummary } from "./simulate_report.ts";

/** A decision for machines: one line of JSON with every descriptor of the request. */
export function decisionJson({ line, request, before, after, change }: FoundDecision): string {
  return JSON.stringify({
    type: before === undefined ? "overLimit" : "change",
    line,
    time: timeText(request.time),
    domain: request.domain,
    change: change?.kind,
    overallCode: { old: before?.overallCode, new: after.overallCode },
    descriptors: after.statuses.map((status, index) => {
      const old = before?.statuses[index];
      return {
        entries: request.descriptors[index]?.entries ?? [],
        change: change?.statuses[index],
        old: old === undefined ? undefined : statusJson(old),
        new: statusJson(status),
      };
    }),
  });
}

/** The summary for machines: one line of JSON. */
export function summaryJson(summary: SimulationSummary): string {
  const { tally, compares, wrong, first, last, back, evicted, hidden } = summary;
  const { requests, decisions, overLimit, changedRequests, changedDecisions } = tally;
  return JSON.stringify({
    type: "summary",
    requests,
    decisions,
    wrongLines: wrong,
    from: timeText(first),
    to: timeText(last),
    overLimitRequests: compares ? overLimit : { new: overLimit.new },
    ...(compares ? { changedRequests, changedDecisions } : {}),
    rules: tally.rules.map((rule) => {
      const { source, rule: name, old, new: now, changed } = rule;
      return {
        source,
        rule: source === "rule" ? name : undefined,
        ...(compares ? { old, new: now, changed } : { new: now }),
      };
    }),
    notShown: hidden,
    backInTime: {
      requests: back.requests,
      mostSeconds: back.mostMs / 1_000,
      byMoreThanAMinute: back.tooLate,
    },
    evictedCounters: evicted,
  });
}

function statusJson({ code, limit, remaining, shadowed }: SimulatedStatus): unknown {
  return {
    code,
    rule: limit?.rule?.fullKey,
    limit: limit === undefined ? undefined : limit.unlimited ? { unlimited: true } : {
      requestsPerUnit: limit.requestsPerUnit,
      unit: limit.unit,
      windowSeconds: limit.windowSeconds,
    },
    remaining: limit === undefined ? undefined : remaining,
    shadowed,
  };
}
