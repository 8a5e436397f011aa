import { testCases } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";
import { CLIENT_TIMERS, XDS_CASES } from "./settings_xds_cases.ts";

testCases("the configuration server", XDS_CASES, CLIENT_TIMERS, CERTIFICATES);
