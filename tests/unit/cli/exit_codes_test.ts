/** Exit code 2 of every command for a wrong command line, before it has an effect or calls a service. */
import { assertEquals } from "#assert";
import { callOf, type Command } from "../../../src/cli/command.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { EXAMPLES } from "../../../src/cli/examples.ts";
import { ran, words } from "../../harness/administration_fixture.ts";

const MISSING = "/no/such/file";
/** Flags that others require. */
const WITH: Readonly<Record<string, readonly string[]>> = {
  "client --ca": ["--tls"],
  "client --cert": ["--tls", "--key", MISSING],
  "client --key": ["--tls", "--cert", MISSING],
  "bench --ca": ["--tls"],
  "bench --cert": ["--tls", "--key", MISSING],
  "bench --key": ["--tls", "--cert", MISSING],
  "health --ca": ["--url", "https://127.0.0.1:1"],
};
const { lone, groups } = documentedCommands();
/** `help` and `version` are read before all others. */
const COMMANDS = [...lone, ...groups.flatMap(({ commands }) => commands)]
  .filter(({ words }) => !/^(?:help|version)/.test(words));
/** A call would fail with exit code 1. */
const ENVIRONMENT = { ADMIN_TOKEN: "a-token-0123456789-0123456789", WEIR_URL: "http://127.0.0.1:1" };

for (const command of COMMANDS) {
  Deno.test(`weir ${callOf(command)}: each wrong command line ends with 2`, async () => {
    const lines = wrongLines(command);
    const ended = await Promise.all(lines.map(async (line) => {
      const { code, stdout } = await ran(line, { environment: ENVIRONMENT, stdin: "{}" });
      return [line.join(" "), code, stdout];
    }));
    assertEquals(ended, lines.map((line) => [line.join(" "), 2, ""]));
  });
}

/** Valid command lines with something wrong behind, and the command without its arguments. */
function wrongLines({ words: name, args, flags }: Command): readonly (readonly string[])[] {
  const given = words((EXAMPLES[name] ?? "").replace(/ < .*/, ""));
  const named = [...name.split(" "), ...given];
  const ofFlags = Object.entries(flags).flatMap(([flag, { value }]) => {
    if (value === undefined) return [[...named, `--${flag}=maybe`]];
    const isFile = /^(?:FILE|STORE)$/.test(value) && name !== "store move";
    const more = WITH[`${name} --${flag}`] ?? [];
    return [[...named, `--${flag}`], ...(isFile ? [[...named, `--${flag}`, MISSING, ...more]] : [])];
  });
  return [
    [...named, "--no-such-flag", "x"],
    [...named, "one-more"],
    ...(args.length === 0 ? [] : [name.split(" ")]),
    ...ofFlags,
  ];
}

/** Command lines after variables, which the parser of flags accepts. */
const WRONG_VALUES: readonly (readonly [line: string, environment?: Readonly<Record<string, string>>])[] = [
  ["check /no/such/folder"],
  ["check config/rules", { MERGE_DOMAIN_CONFIG: "maybe" }],
  ["workflows check /no/such/folder"],
  ["workflows check config/workflows", { WORKFLOW_ENV: "??" }],
  ["explain --config /no/such/folder --domain a --descriptors a=b"],
  ["explain --config config/rules --domain a --descriptors a=b", { USE_CALENDAR_MONTH_RATE_LIMIT: "x" }],
  ["simulate --config /no/such/folder --requests -"],
  ["simulate --config config/rules --against /no/such/folder --requests -"],
  ["client --domain a --descriptors a=b --tls --cert README.md --key README.md"],
  ["store move --from a.db --to b.db"],
  ["store move --from postgres://a@127.0.0.1:1/x --to postgres://b@127.0.0.1:1/x"],
  ["store move --from /no/such/file --to postgres://a@127.0.0.1:1/x"],
  ["store check --store postgres://x"],
  ["store check --store config"],
  ["store backup /tmp/never --store postgres://u@127.0.0.1:1/x"],
  ["settings translate --file README.md"],
  ["endpoints list --json --output yaml", ENVIRONMENT],
  ["events post a.b --idempotency-key '\u0001'", ENVIRONMENT],
  ["version one-more"],
];

for (const [line, environment = {}] of WRONG_VALUES) {
  Deno.test(`weir ${JSON.stringify(line).slice(1, -1)}: ends with 2`, async () => {
    const { code, stderr } = await ran(line, { environment, stdin: "" });
    assertEquals(code, 2, stderr);
  });
}
