import { assertEquals } from "#assert";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import { stores } from "../harness/store_places.ts";
import { ACCEPT_CASES } from "./webhook_store_accept_cases.ts";
import { RECORD_CASES } from "./webhook_store_administration_cases.ts";
import { type StoreCases, type TestStore, testStore } from "./webhook_store_bed.ts";
import { BOUND_CASES } from "./webhook_store_bound_cases.ts";
import { CLAIM_CASES } from "./webhook_store_claim_cases.ts";
import { DELIVERY_CASES } from "./webhook_store_delivery_cases.ts";
import { EXECUTION_CASES } from "./webhook_store_execution_cases.ts";
import { FILTER_CASES } from "./webhook_store_filter_cases.ts";
import { FORM_CASES } from "./webhook_store_form_cases.ts";
import { GROUP_CASES } from "./webhook_store_group_cases.ts";
import { HEALTH_CASES } from "./webhook_store_health_cases.ts";
import { IDENTIFIER_CASES } from "./webhook_store_identifier_cases.ts";
import { LIMIT_CASES } from "./webhook_store_limit_cases.ts";
import { LIST_CASES } from "./webhook_store_list_cases.ts";
import { PAUSE_CASES } from "./webhook_store_pause_cases.ts";
import { RATE_CASES } from "./webhook_store_rate_cases.ts";
import { REMOVAL_CASES } from "./webhook_store_removal_cases.ts";
import { REPLAY_CASES } from "./webhook_store_replay_cases.ts";
import { SEALED_CASES } from "./webhook_store_sealed_cases.ts";
import { SIGNED_TRIGGER_CASES } from "./webhook_store_trigger_cases.ts";

const CASES: StoreCases = {
  ...ACCEPT_CASES,
  ...BOUND_CASES,
  ...DELIVERY_CASES,
  ...CLAIM_CASES,
  ...EXECUTION_CASES,
  ...FILTER_CASES,
  ...FORM_CASES,
  ...GROUP_CASES,
  ...RECORD_CASES,
  ...PAUSE_CASES,
  ...RATE_CASES,
  ...REMOVAL_CASES,
  ...REPLAY_CASES,
  ...SEALED_CASES,
  ...IDENTIFIER_CASES,
  ...LIST_CASES,
  ...HEALTH_CASES,
  ...LIMIT_CASES,
  ...SIGNED_TRIGGER_CASES,
};

/** The contract of the webhook service's stores. */
for (const [title, run] of Object.entries(CASES)) {
  stores.test(`webhook store: ${title}`, async ({ address, open }) => {
    {
      await using opened = new AsyncDisposableStack();
      const another = async (): Promise<TestStore> => testStore(opened.use(await open()), another);
      await run(await another());
    }
    assertEquals((await checkStore(address)).problems, []);
  });
}
