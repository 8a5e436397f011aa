import { assertEquals } from "#assert";
import { callOf } from "../../../src/cli/command.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { settingsHelp } from "../../../src/settings/docs.ts";
import { type Ran, ran } from "../../harness/administration_fixture.ts";

const SERVE_USAGE = `usage: weir serve [flags]
example: weir serve

Start the service (the default).

  -h, --help  show this text

Settings are environment variables; "weir help settings" lists them.
`;

const AUDIT_USAGE = `usage: weir audit [flags]
example: weir audit --action delivery.failed --since 24h

List the audit log, newest first.

      --action ACTION     only entries with this action, such as delivery.failed
      --since TIME        only records from this time on, such as 2026-01-31T12:00:00Z, or 24h for 24 hours ago
      --until TIME        only records before this time, in the same forms
  -n, --limit N           maximum number of records on a page, up to 200 (default 50)
      --cursor CURSOR     start of the page, as printed with the previous page
      --all               print every page
      --watch             print the list again when it changes, every 2 seconds until interrupted; on a terminal, in its place
  -o, --output FORMAT     output format: table (default), json, yaml, or id for identifiers alone
      --json              the same as --output json
      --url URL           URL of the service (default $WEIR_URL, else http://localhost:8080)
      --token-file FILE   file with the token (default $ADMIN_TOKEN, else data/admin-token for a service on this machine)
      --timeout DURATION  timeout of each request (default 30s)
  -h, --help              show this text
`;

const EVENT_KEYS_USAGE = `usage: weir event-keys COMMAND [flags]

  weir event-keys list         list event keys, newest first
  weir event-keys create NAME  create a key for posting events and show it once
  weir event-keys show ID      show an event key
  weir event-keys delete ID    delete a key for posting events

Every command has --help.
`;

const SERVE_HINT = 'Run "weir serve --help" for its usage\n';
const USED_WRONGLY = `Cannot run "serve": expected "weir serve [flags]"\n${SERVE_HINT}`;
const LIST_HINT = 'Run "weir event-keys --help" to list its commands\n';

/** Texts that are compared in full. */
const PRINTED: Readonly<Record<string, Ran>> = {
  "serve -help": { code: 0, stdout: SERVE_USAGE, stderr: "" },
  "serve --help": { code: 0, stdout: SERVE_USAGE, stderr: "" },
  "serve -h": { code: 0, stdout: SERVE_USAGE, stderr: "" },
  "serve now": { code: 2, stdout: "", stderr: USED_WRONGLY },
  "serve -port 80": { code: 2, stdout: "", stderr: `Unknown flag --port\n${SERVE_HINT}` },
  "audit -h": { code: 0, stdout: AUDIT_USAGE, stderr: "" },
  "audit --help": { code: 0, stdout: AUDIT_USAGE, stderr: "" },
  "help audit": { code: 0, stdout: AUDIT_USAGE, stderr: "" },
  "event-keys --help": { code: 0, stdout: EVENT_KEYS_USAGE, stderr: "" },
  "help event-keys": { code: 0, stdout: EVENT_KEYS_USAGE, stderr: "" },
  "event-keys": {
    code: 2,
    stdout: "",
    stderr: `Cannot run "event-keys": the command is missing\n${LIST_HINT}`,
  },
  "event-keys lst": {
    code: 2,
    stdout: "",
    stderr: `Unknown command "event-keys lst"; did you mean list?\n${LIST_HINT}`,
  },
  "help settings": {
    code: 0,
    stdout: `Settings are environment variables:\n\n${settingsHelp()}\n`,
    stderr: "",
  },
  "help clinet": unknown('Unknown command "clinet"; did you mean client?', "weir help", "commands"),
  "endpoint": unknown('Unknown command "endpoint"; did you mean endpoints?', "weir help", "commands"),
  "xyzzy": unknown('Unknown command "xyzzy"', "weir help", "commands"),
  "help settings KV_TIMOUT": unknown(
    'Unknown setting "KV_TIMOUT"; did you mean KV_TIMEOUT?',
    "weir help settings",
    "settings",
  ),
};

function unknown(line: string, help: string, what: string): Ran {
  return { code: 2, stdout: "", stderr: `${line}\nRun "${help}" to list all ${what}\n` };
}

for (const [line, expected] of Object.entries(PRINTED)) {
  Deno.test(`weir ${line}: what it prints`, async () => assertEquals(await ran(line), expected));
}

/** The first line that is printed. */
const FIRST_LINES: Readonly<Record<string, string>> = {
  "help serve": "usage: weir serve [flags]",
  "help client": "usage: weir client [flags]",
  "client -help": "usage: weir client [flags]",
  "client --h": "usage: weir client [flags]",
  "help check": "usage: weir check DIR [flags]",
  "check DIR -help": "usage: weir check DIR [flags]",
  "explain --help": "usage: weir explain [flags]",
  "help endpoints": "usage: weir endpoints COMMAND [flags]",
  "help endpoints add": "usage: weir endpoints add URL [flags]",
  "help endpoints unknown": "usage: weir endpoints COMMAND [flags]",
  "triggers -help": "usage: weir triggers COMMAND [flags]",
  "event-keys list -h": "usage: weir event-keys list [flags]",
  "executions show -h": "usage: weir executions show ID [flags]",
  "webhooks verify -h": "usage: weir webhooks verify [flags]",
  "help webhooks listen": "usage: weir webhooks listen [flags]",
  "help store backup": "usage: weir store backup FILE [flags]",
  "store check -h": "usage: weir store check [flags]",
  "help health": "usage: weir health [flags]",
  "health -h": "usage: weir health [flags]",
  "help version": "usage: weir version [flags]",
  "help help": "usage: weir help [COMMAND] [flags]",
  "help settings check": "usage: weir settings check [flags]",
  "help settings PORT": "PORT (8080)",
  "help settings port": "PORT (8080)",
};

for (const [line, first] of Object.entries(FIRST_LINES)) {
  Deno.test(`weir ${line}: begins with its usage`, async () => {
    const { code, stdout, stderr } = await ran(line);
    assertEquals([code, stdout.split("\n")[0], stderr], [0, first, ""]);
  });
}

Deno.test("weir help: a line for each command, and no settings", async () => {
  const { stdout } = await ran("help");
  const { lone, groups } = documentedCommands();
  const lines = stdout.split("\n");
  assertEquals(
    lines[0]?.replace(/^weir \S*:/, "weir:"),
    "weir: a rate limit decision service and a workflow webhook service",
  );
  for (const command of [...lone, ...groups.flatMap(({ commands }) => commands)]) {
    const found = lines.filter((line) => line.startsWith(`  weir ${callOf(command)} `));
    assertEquals([callOf(command), found.length], [callOf(command), 1]);
  }
  assertEquals(stdout.includes("LOG_LEVEL"), false);
});
