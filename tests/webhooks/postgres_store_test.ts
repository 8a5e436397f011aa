import { assertEquals } from "@std/assert";
import { checkStore } from "../../src/webhooks/store_check.ts";
import { webhookStoreContract } from "../contract/webhook_store_contract.ts";
import { openStoreAt, sharedPostgres } from "./postgres_fixture.ts";

const server = sharedPostgres();

webhookStoreContract("postgres", async () => {
  const url = server().url(await server().createDatabase());
  return {
    open: () => openStoreAt(url),
    async end() {
      assertEquals((await checkStore(url)).problems, []);
    },
  };
}, { tools: ["postgres"] });
