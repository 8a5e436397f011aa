import { testCases } from "./settings_case.ts";
import { SHARED_CLUSTER, SHARED_REDIS, SHARED_SENTINELS } from "./settings_kv_bed.ts";
import { KV_CASES } from "./settings_kv_cases.ts";
import { KV_PER_SECOND_CASES } from "./settings_kv_per_second_cases.ts";
import { KV_POOL_CASES } from "./settings_kv_pool_cases.ts";
import { KV_STARTUP_CASES } from "./settings_kv_startup_cases.ts";

const CASES = { ...KV_CASES, ...KV_POOL_CASES, ...KV_STARTUP_CASES, ...KV_PER_SECOND_CASES };
testCases("the key-value caches", CASES, SHARED_REDIS, SHARED_CLUSTER, SHARED_SENTINELS);
