import { testCases } from "./settings_case.ts";
import { OTLP_METRICS_CASES } from "./settings_otlp_cases.ts";
import { PULL_CASES } from "./settings_pull_cases.ts";
import { PUSH_CASES } from "./settings_push_cases.ts";
import { TRACED, TRACING_CASES } from "./settings_tracing_cases.ts";

testCases(
  "statistics and tracing",
  { ...PUSH_CASES, ...PULL_CASES, ...OTLP_METRICS_CASES, ...TRACING_CASES },
  TRACED,
);
