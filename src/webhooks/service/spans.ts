import type { TracedWork } from "../../base/traced_work.ts";
import type { AttemptReport } from "../deliveries/metrics.ts";
import type { StepReport } from "../workflows/run.ts";

/** The name of the span of an attempt. */
export const ATTEMPT_SPAN = "webhook attempt";

/** The span of an attempt; the attempts of a delivery are one trace. */
export function attemptSpan(report: AttemptReport): TracedWork {
  const { deliveryId, endpointId, event, number, manual, result, status, errorKind } = report;
  return {
    name: ATTEMPT_SPAN,
    kind: "client",
    id: deliveryId,
    startedAt: report.startedAt,
    tookMs: report.tookMs,
    attributes: {
      "weir.delivery.id": deliveryId,
      "weir.endpoint.id": endpointId,
      "weir.event.kind": event,
      "weir.attempt.number": number,
      "weir.attempt.manual": manual,
      "weir.attempt.result": result,
      ...(status === undefined ? {} : { "http.response.status_code": status }),
      ...(errorKind === undefined ? {} : { "error.type": errorKind }),
    },
    failure: result === "failed" ? errorKind ?? result : undefined,
  };
}

/** The span of an attempt of a step; the steps of an execution are one trace. */
export function stepSpan(report: StepReport): TracedWork {
  const { executionId, workflow, step, kind, attempt, result } = report;
  return {
    name: "workflow step",
    kind: kind === "request" ? "client" : "internal",
    id: executionId,
    startedAt: report.startedAt,
    tookMs: report.tookMs,
    attributes: {
      "weir.execution.id": executionId,
      "weir.workflow": workflow,
      "weir.step.name": step,
      "weir.step.kind": kind,
      "weir.step.attempt": attempt,
      "weir.step.result": result,
    },
    failure: result === "failed" ? result : undefined,
  };
}
