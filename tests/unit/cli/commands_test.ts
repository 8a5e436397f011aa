import { assert, assertEquals } from "@std/assert";
import { commandsMarkdown, groupLines, isCommandGroup, usageFor } from "../../../src/cli/commands.ts";
import { ran } from "../../harness/administration_fixture.ts";

const AUDIT_USAGE = `usage: weir audit [flags]

Lists the audit log, the newest first.

  --action ACTION     only this action, such as delivery.failed
  --since TIME        only from this time on; 24h means 24 hours ago
  --until TIME        only before this time
  --limit N           at most this many, up to 200 (default 50)
  --cursor CURSOR     where a page begins, as the page before it says
  --all               every page, not only one
  --json              print the answer as it came
  --url URL           the service (default $WEIR_URL, else http://localhost:8080)
  --token-file FILE   file of the token (default $ADMIN_TOKEN, else data/admin-token for a service of this machine)
  --timeout DURATION  how long to wait for an answer (default 30s)
  --help              this text`;

const EVENT_KEYS_USAGE = `usage: weir event-keys COMMAND [flags]

  weir event-keys list         lists event keys, the newest first
  weir event-keys create NAME  makes a key for posting events and shows it once
  weir event-keys delete ID    deletes a key for posting events

Each has a --help of its own.`;

Deno.test("the usage of a command comes from its row of the table", async () => {
  assertEquals(usageFor(["audit"]), AUDIT_USAGE);
  for (const flag of ["-h", "--help"]) {
    assertEquals(await ran(["audit", flag]), { code: 0, stdout: `${AUDIT_USAGE}\n`, stderr: "" });
  }
});

Deno.test("the usage of a group names its commands", async () => {
  assertEquals(usageFor(["event-keys"]), EVENT_KEYS_USAGE);
  assertEquals(await ran(["event-keys", "--help"]), { code: 0, stdout: `${EVENT_KEYS_USAGE}\n`, stderr: "" });
  assertEquals(await ran(["event-keys"]), {
    code: 2,
    stdout: "",
    stderr: `Cannot run "event-keys": what to do is missing\n\n${EVENT_KEYS_USAGE}\n`,
  });
  assertEquals(await ran(["event-keys", "lst"]), {
    code: 2,
    stdout: "",
    stderr: `Cannot run "event-keys lst": there is no such command\n\n${EVENT_KEYS_USAGE}\n`,
  });
});

Deno.test("groups are words of their own", () => {
  assertEquals(["endpoints", "audit", "store", "serve", "", "toString"].map(isCommandGroup), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

Deno.test("every group has a line, every command a row with its own flags", () => {
  const groups = groupLines().map((line) => line.trim().split(/\s+/)[1]);
  const words = "endpoints triggers event-keys events deliveries executions audit webhooks store".split(" ");
  assertEquals(groups, words);
  const rows = commandsMarkdown().split("\n").filter((line) => line.startsWith("| `weir "));
  assertEquals(rows.length, 35);
  assert(rows.includes(
    "| `weir endpoints recover ID` | Opens the failed deliveries of an endpoint again, with a new schedule. | " +
      "`--since` `--until` `--dry-run` |",
  ));
  assert(rows.includes("| `weir store check` | Looks whether the store is whole. | `--store` |"));
});
