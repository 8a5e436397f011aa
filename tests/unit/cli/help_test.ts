import { assertEquals, assertMatch } from "@std/assert";
import type { Output } from "../../../src/cli/command.ts";
import { callOf } from "../../../src/cli/command.ts";
import { documentedCommands, runCommand } from "../../../src/cli/commands.ts";
import { settingsHelp } from "../../../src/settings/docs.ts";

const SERVE_USAGE = `usage: weir serve [flags]

Start the service (the default).

  --help  show this text

Settings are environment variables; "weir help settings" lists them.
`;

/** What a command answers and prints. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[]): Promise<Ran> {
  const written = { stdout: "", stderr: "" };
  const output: Output = {
    stdout: (line) => void (written.stdout += `${line}\n`),
    stderr: (line) => void (written.stderr += `${line}\n`),
  };
  const code = await runCommand(args, { environment: {}, output, version: "1.2.3" });
  return { code, ...written };
}

const SERVED: readonly (readonly [args: string[], ran: Ran])[] = [
  [["-help"], { code: 0, stdout: SERVE_USAGE, stderr: "" }],
  [["--help"], { code: 0, stdout: SERVE_USAGE, stderr: "" }],
  [["-h"], { code: 0, stdout: SERVE_USAGE, stderr: "" }],
  [["now"], {
    code: 2,
    stdout: "",
    stderr: `Cannot run "serve": expected "weir serve [flags]"\n\n${SERVE_USAGE}`,
  }],
  [["-port", "80"], {
    code: 2,
    stdout: "",
    stderr: `Unknown flag --port\n\n${SERVE_USAGE}`,
  }],
];

for (const [args, ran] of SERVED) {
  Deno.test(`weir serve ${args.join(" ")}: what it says instead of serving`, async () => {
    assertEquals(await run(["serve", ...args]), ran);
  });
}

const TOPICS: readonly (readonly [args: string[], first: string])[] = [
  [["serve"], "usage: weir serve [flags]"],
  [["client"], "usage: weir client [flags]"],
  [["check"], "usage: weir check DIR [flags]"],
  [["endpoints"], "usage: weir endpoints COMMAND [flags]"],
  [["endpoints", "add"], "usage: weir endpoints add URL [flags]"],
  [["endpoints", "unknown"], "usage: weir endpoints COMMAND [flags]"],
  [["audit"], "usage: weir audit [flags]"],
  [["webhooks", "listen"], "usage: weir webhooks listen [flags]"],
  [["store", "backup"], "usage: weir store backup FILE [flags]"],
  [["health"], "usage: weir health [flags]"],
  [["version"], "usage: weir version [flags]"],
  [["help"], "usage: weir help [COMMAND] [flags]"],
  [["settings"], "Settings are environment variables:"],
  [["settings", "check"], "usage: weir settings check [flags]"],
  [["settings", "PORT"], "PORT (8080)"],
  [["settings", "port"], "PORT (8080)"],
  [[], "weir 1.2.3: a rate limit decision service and a workflow webhook service"],
];

for (const [args, first] of TOPICS) {
  Deno.test(`weir help ${args.join(" ")}: begins with its usage`, async () => {
    const { code, stdout, stderr } = await run(["help", ...args]);
    assertEquals([code, stdout.split("\n")[0], stderr], [0, first, ""]);
  });
}

Deno.test("weir help: a line for each command, and no settings", async () => {
  const { stdout } = await run(["help"]);
  const { lone, groups } = documentedCommands();
  const lines = stdout.split("\n");
  for (const command of [...lone, ...groups.flatMap(({ commands }) => commands)]) {
    const found = lines.filter((line) => line.startsWith(`  weir ${callOf(command)} `));
    assertEquals([callOf(command), found.length], [callOf(command), 1]);
  }
  assertEquals(stdout.includes("LOG_LEVEL"), false);
});

Deno.test("weir help settings: every setting", async () => {
  const { stdout } = await run(["help", "settings"]);
  assertEquals(stdout, `Settings are environment variables:\n\n${settingsHelp()}\n`);
});

const UNKNOWN: readonly (readonly [args: string[], stderr: string])[] = [
  [
    ["help", "clinet"],
    'Unknown command "clinet"; did you mean client?\nRun "weir help" to list all commands\n',
  ],
  [
    ["endpoint"],
    'Unknown command "endpoint"; did you mean endpoints?\nRun "weir help" to list all commands\n',
  ],
  [["xyzzy"], 'Unknown command "xyzzy"\nRun "weir help" to list all commands\n'],
  [
    ["help", "settings", "KV_TIMOUT"],
    'Unknown setting "KV_TIMOUT"; did you mean KV_TIMEOUT?\nRun "weir help settings" to list all settings\n',
  ],
];

for (const [args, stderr] of UNKNOWN) {
  Deno.test(`weir ${args.join(" ")}: unknown, with the nearest name`, async () => {
    assertEquals(await run(args), { code: 2, stdout: "", stderr });
  });
}

const COMMANDS: readonly (readonly [args: string[], code: number, stdout: RegExp, stderr: RegExp])[] = [
  [["endpoints"], 2, /^$/, /^Cannot run "endpoints": the command is missing/],
  [["triggers", "-help"], 0, /^usage: weir triggers COMMAND/, /^$/],
  [["event-keys", "list", "-h"], 0, /^usage: weir event-keys list/, /^$/],
  [["events", "post"], 2, /^$/, /^Cannot run "events post": KIND is missing/],
  [["deliveries", "help"], 2, /^$/, /^Unknown command "deliveries help"/],
  [["executions", "show", "-h"], 0, /^usage: weir executions show ID/, /^$/],
  [["audit", "-h"], 0, /^usage: weir audit /, /^$/],
  [["webhooks", "verify", "-h"], 0, /^usage: weir webhooks verify /, /^$/],
  [["health", "-h"], 0, /^usage: weir health /, /^$/],
  [["store", "check", "-h"], 0, /^usage: weir store check /, /^$/],
];

for (const [args, code, stdout, stderr] of COMMANDS) {
  Deno.test(`weir ${args.join(" ")}: ends at once`, async () => {
    const ran = await run(args);
    assertEquals(ran.code, code);
    assertMatch(ran.stdout, stdout);
    assertMatch(ran.stderr, stderr);
  });
}
