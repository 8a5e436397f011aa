import ownVectors from "../testdata/own_vectors.json" with { type: "json" };
import vectors from "../testdata/vectors.json" with { type: "json" };
import type { Decision } from "../../src/ratelimit/decision.ts";
import type { JsonObject } from "../../src/ratelimit/rule_source.ts";

/** One conformance case; `vectors.json` says what its fields mean. */
export interface Vector {
  readonly id: string;
  readonly area: string;
  readonly why: string;
  readonly config: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly expect_config_error: boolean;
  readonly reject_reason?: string;
  readonly steps: readonly VectorStep[];
}

/** One step of a case: a request, an HTTP request, or a reload. */
export interface VectorStep {
  readonly at?: number;
  readonly request?: JsonObject;
  readonly http?: { readonly method: string; readonly path: string; readonly body: string };
  readonly reload?: Readonly<Record<string, string>>;
  readonly expect: VectorExpectation;
  readonly expect_stats_total?: Readonly<Record<string, number>>;
}

/** The expectation of a step; its fields depend on the step. */
interface VectorExpectation {
  readonly overallCode?: string;
  readonly statuses?: readonly JsonObject[];
  readonly matched?: readonly (JsonObject | null)[];
  readonly cacheKeys?: readonly string[];
  readonly kvCommands?: readonly (readonly [string, string, number?])[];
  readonly responseHeadersToAdd?: readonly JsonObject[];
  readonly dynamicMetadata?: JsonObject;
  readonly error?: { readonly grpcCode: string; readonly grpcMessage: string; readonly httpStatus: number };
  readonly httpStatus?: number;
  readonly contentType?: string;
  readonly httpBody?: string | JsonObject;
  readonly accepted?: boolean;
}

/** All cases. */
export const VECTORS: readonly Vector[] = [...vectors, ...ownVectors] as unknown as readonly Vector[];

/** A decision as the cases write it: proto JSON with zero `limitRemaining` written out. */
export function decisionAsVector(decision: Decision): JsonObject {
  return {
    overallCode: decision.overallCode,
    statuses: decision.statuses.map(({ code, currentLimit: limit, limitRemaining, secondsUntilReset }) => ({
      code,
      ...(limit === undefined ? {} : {
        currentLimit: {
          ...(limit.name === "" ? {} : { name: limit.name }),
          requestsPerUnit: limit.requestsPerUnit,
          unit: limit.unit ?? "UNKNOWN",
        },
      }),
      limitRemaining,
      ...(secondsUntilReset === undefined ? {} : { durationUntilReset: `${secondsUntilReset}s` }),
    })),
    ...(decision.responseHeadersToAdd.length === 0
      ? {}
      : { responseHeadersToAdd: decision.responseHeadersToAdd.map(({ key, value }) => ({ key, value })) }),
    ...(decision.dynamicMetadata === undefined ? {} : { dynamicMetadata: decision.dynamicMetadata }),
  };
}

/** The fields of an expectation that a decision shows. */
export function expectedDecision(expected: VectorExpectation): JsonObject {
  const { overallCode = "", statuses = [], responseHeadersToAdd, dynamicMetadata } = expected;
  return {
    overallCode,
    statuses,
    ...(responseHeadersToAdd === undefined ? {} : { responseHeadersToAdd }),
    ...(dynamicMetadata === undefined ? {} : { dynamicMetadata }),
  };
}

/** The commands of a case, summed up by key: what was added, and the longest expiry that was set. */
export function expectedCounters(vector: Vector): Map<string, { added: number; expires: number }> {
  const counters = new Map<string, { added: number; expires: number }>();
  for (const { expect } of vector.steps) {
    for (const [command, key, argument = 0] of expect.kvCommands ?? []) {
      const counter = counters.get(key) ?? { added: 0, expires: 0 };
      if (command === "INCRBY") counter.added += argument;
      if (command === "EXPIRE") counter.expires = Math.max(counter.expires, argument);
      counters.set(key, counter);
    }
  }
  return counters;
}
