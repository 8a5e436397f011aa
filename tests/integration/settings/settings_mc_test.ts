import { testCases } from "./settings_case.ts";
import { MC_CASES } from "./settings_mc_cases.ts";
import { MC_SRV_CASES } from "./settings_mc_srv_cases.ts";

testCases("the memcached-style cache", { ...MC_CASES, ...MC_SRV_CASES });
