import { CACHE_TLS_CASES, CACHES_WITH_TLS } from "./settings_cache_tls_cases.ts";
import { BASELINE, testCases } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";
import { GRPC_TLS_CASES } from "./settings_grpc_tls_cases.ts";
import { HTTP_TLS_CASES } from "./settings_http_tls_cases.ts";
import { SHARED_REDIS } from "./settings_kv_bed.ts";

const CASES = { ...CACHE_TLS_CASES, ...GRPC_TLS_CASES, ...HTTP_TLS_CASES };
testCases(
  "TLS, and of the HTTP and debug ports",
  CASES,
  BASELINE,
  CERTIFICATES,
  CACHES_WITH_TLS,
  SHARED_REDIS,
);
