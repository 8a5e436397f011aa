import { assertEquals } from "@std/assert";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import { webhookStoreContract } from "./webhook_store_contract.ts";
import { emptyDatabases, openStoreAt, sharedPostgres } from "../harness/postgres_fixture.ts";

const emptyDatabase = emptyDatabases(sharedPostgres());

webhookStoreContract("postgres", async () => {
  const url = await emptyDatabase();
  return {
    open: () => openStoreAt(url),
    async end() {
      assertEquals((await checkStore(url)).problems, []);
    },
  };
}, { tools: ["postgres"] });
