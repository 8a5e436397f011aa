import { assertEquals } from "@std/assert";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import { webhookStoreContract } from "./webhook_store_contract.ts";
import { StoreFolder } from "../harness/sqlite_fixture.ts";

webhookStoreContract("sqlite", () => {
  const folder = new StoreFolder();
  return Promise.resolve({
    open: () => folder.open(),
    async end() {
      try {
        assertEquals((await checkStore(folder.path)).problems, []);
      } finally {
        folder[Symbol.dispose]();
      }
    },
  });
});
