import type { WebhookStore } from "../../src/webhooks/store/store.ts";
import { needs, type Tool } from "../harness/tools.ts";
import { ACCEPT_CASES } from "./webhook_store_accept_cases.ts";
import { RECORD_CASES } from "./webhook_store_administration_cases.ts";
import type { StoreCases } from "./webhook_store_bed.ts";
import { BOUND_CASES } from "./webhook_store_bound_cases.ts";
import { CLAIM_CASES } from "./webhook_store_claim_cases.ts";
import { DELIVERY_CASES } from "./webhook_store_delivery_cases.ts";
import { EXECUTION_CASES } from "./webhook_store_execution_cases.ts";
import { FILTER_CASES } from "./webhook_store_filter_cases.ts";
import { GROUP_CASES } from "./webhook_store_group_cases.ts";
import { HEALTH_CASES } from "./webhook_store_health_cases.ts";
import { LIMIT_CASES } from "./webhook_store_limit_cases.ts";
import { LIST_CASES } from "./webhook_store_list_cases.ts";
import { REMOVAL_CASES } from "./webhook_store_removal_cases.ts";
import { SEALED_CASES } from "./webhook_store_sealed_cases.ts";
import { SIGNED_TRIGGER_CASES } from "./webhook_store_trigger_cases.ts";

/** An empty place for a store. */
export interface WebhookStoreFixture {
  /** Opens another object on the same store, as another process would; closed by the suite. */
  open(): Promise<WebhookStore>;
  /** Looks at what the case has left behind and ends what the store stands on. */
  end(): Promise<void>;
}

const CASES: StoreCases = {
  ...ACCEPT_CASES,
  ...BOUND_CASES,
  ...DELIVERY_CASES,
  ...CLAIM_CASES,
  ...EXECUTION_CASES,
  ...FILTER_CASES,
  ...GROUP_CASES,
  ...RECORD_CASES,
  ...REMOVAL_CASES,
  ...SEALED_CASES,
  ...LIST_CASES,
  ...HEALTH_CASES,
  ...LIMIT_CASES,
  ...SIGNED_TRIGGER_CASES,
};

/** What every store of the webhook service must do, whatever it stands on. */
export function webhookStoreContract(
  name: string,
  begin: () => Promise<WebhookStoreFixture>,
  { tools = [] }: { readonly tools?: readonly Tool[] } = {},
): void {
  for (const [title, run] of Object.entries(CASES)) {
    Deno.test({
      ...needs(tools, `webhook store ${name}: ${title}`),
      async fn() {
        const fixture = await begin();
        const opened: WebhookStore[] = [];
        const another = async () => {
          const store = await fixture.open();
          opened.push(store);
          return store;
        };
        try {
          await run({ store: await another(), another });
        } finally {
          for (const store of opened) await store.close();
          await fixture.end();
        }
      },
    });
  }
}
