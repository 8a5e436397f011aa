import { testCases } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";
import { WEBHOOK_CASES } from "./settings_webhook_cases.ts";
import { POSTGRES_BASELINE } from "./settings_webhook_postgres_cases.ts";

testCases("the webhook service", WEBHOOK_CASES, CERTIFICATES, POSTGRES_BASELINE);
