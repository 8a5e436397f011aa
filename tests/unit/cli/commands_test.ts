import { assertEquals } from "@std/assert";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { helpText } from "../../../src/cli/help.ts";
import { ran } from "../../harness/administration_fixture.ts";

const AUDIT_USAGE = `usage: weir audit [flags]

List the audit log, newest first.

  --action ACTION     only entries with this action, such as delivery.failed
  --since TIME        only records from this time on, such as 2026-01-31T12:00:00Z, or 24h for 24 hours ago
  --until TIME        only records before this time, in the same forms
  --limit N           maximum number of records on a page, up to 200 (default 50)
  --cursor CURSOR     start of the page, as printed with the previous page
  --all               print every page
  --output FORMAT     output format: table (default), json or yaml
  --json              the same as --output json
  --url URL           URL of the service (default $WEIR_URL, else http://localhost:8080)
  --token-file FILE   file with the token (default $ADMIN_TOKEN, else data/admin-token for a service on this machine)
  --timeout DURATION  timeout of each request (default 30s)
  --help              show this text`;

const EVENT_KEYS_USAGE = `usage: weir event-keys COMMAND [flags]

  weir event-keys list         list event keys, newest first
  weir event-keys create NAME  create a key for posting events and show it once
  weir event-keys delete ID    delete a key for posting events

Every command has --help.`;

Deno.test("the usage of a command comes from its row of the table", async () => {
  assertEquals(helpText(["audit"], documentedCommands(), ""), AUDIT_USAGE);
  for (const flag of ["-h", "--help"]) {
    assertEquals(await ran(["audit", flag]), { code: 0, stdout: `${AUDIT_USAGE}\n`, stderr: "" });
  }
});

Deno.test("the usage of a group names its commands", async () => {
  assertEquals(helpText(["event-keys"], documentedCommands(), ""), EVENT_KEYS_USAGE);
  assertEquals(await ran(["event-keys", "--help"]), { code: 0, stdout: `${EVENT_KEYS_USAGE}\n`, stderr: "" });
  assertEquals(await ran(["event-keys"]), {
    code: 2,
    stdout: "",
    stderr: `Cannot run "event-keys": the command is missing\n\n${EVENT_KEYS_USAGE}\n`,
  });
  assertEquals(await ran(["event-keys", "lst"]), {
    code: 2,
    stdout: "",
    stderr: `Unknown command "event-keys lst"\n\n${EVENT_KEYS_USAGE}\n`,
  });
});
