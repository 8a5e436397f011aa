/** The start of docs/cli.md. */
export const CLI_HEAD = `# Command line

This page lists the commands of \`weir\` with their flags and exit codes. \`weir\` without a command starts the
service, which you configure with [settings](settings.md). The other commands call a running service or read files:

\`\`\`console try
$ weir client --domain shop --descriptors account=erin
overall code: OK
descriptor account=erin: OK, limit 5 per MINUTE, remaining 4, reset in 39 s
\`\`\`

In a clone of the repository, [define the command](../README.md#the-commands-deno-and-weir) first.

## Flags and exit codes

- \`weir help\` lists all commands. \`weir help COMMAND\` and \`weir COMMAND --help\` print the usage of one command,
  and \`weir help settings [NAME]\` prints the settings.
- Write a flag as \`--name VALUE\` or \`--name=VALUE\`. A single dash is accepted too, \`-name VALUE\`, and an
  underscore in place of a dash. Flags and arguments may be in any order; \`--\` ends the flags.
- The first characters of an identifier are enough, at least 6 of them: \`weir deliveries why bcf6bfce\`. If several
  records match, the command fails and lists them.
- \`-o\` is \`--output\`, \`-n\` is \`--limit\`, \`-h\` is \`--help\`, and \`weir -v\` prints the version.
- If a flag that cannot be repeated occurs twice, Weir uses the last value.
- Results are written to standard output, errors to standard error. Neither contains colours.
- On a terminal, times are relative, such as \`3 min ago\`, and a deletion asks first; \`--yes\` answers. In scripts and
  pipes, times are in RFC 3339, and nothing is asked.
- \`--watch\` prints a list again when it changes, every 2 seconds until interrupted.
- \`--output id\` prints only identifiers, one per line, where the answer has any:
  \`weir deliveries list --state failed --all --output id\`.
- After two seconds, a command shows its progress on standard error: one line that changes on a terminal, else a line
  every ten seconds.
- \`--output json\`, or \`--json\`, prints the result for programs, and \`--output yaml\` the same as YAML. A check
  then prints its problems as part of the result. Several results are one line of JSON or one YAML document each.

The exit codes are:`;

/** The texts above the groups of commands. */
export const GROUP_HEADS = {
  administration: `## Administration commands

These commands call the [administration API](webhooks/admin-api.md) of a running service. All except
\`weir counters\` require the webhook service. They read the address of the service from \`WEIR_URL\` and the token from \`ADMIN_TOKEN\` (see [settings.md](settings.md#administration)).
They accept these flags:`,
  lists:
    "Commands that print a list also accept these flags; `weir workflows list` has no `--since` and `--until`:",
  local: `## Local commands

These commands do not call the service.`,
} as const;

/** Examples by command or by group. */
export const CLI_EXAMPLES: Readonly<Record<string, string>> = {
  check: `\`\`\`console try
$ weir check config/rules
config/rules: valid: 1 file with rules, 1 domain, 0 errors, 0 warnings
\`\`\``,
  completions: `\`\`\`text
# ~/.bashrc
source <(weir completions bash)
# ~/.zshrc, after compinit
source <(weir completions zsh)
# ~/.config/fish/config.fish
weir completions fish | source
\`\`\``,
  settings: `\`\`\`text
$ KV_TIMOUT=50ms LOG_LEVEL=loud BACKEND_TYPE=memory weir settings check
setting       value   source
LOG_LEVEL     loud    environment
BACKEND_TYPE  memory  environment
Invalid LOG_LEVEL "loud": expected trace, debug, info, warning, error, fatal or panic
warning: KV_TIMOUT is not a setting; did you mean KV_TIMEOUT?
environment: invalid: 2 settings, 1 error, 1 warning
\`\`\``,
  explain: `\`\`\`console try
$ weir explain --config config/rules --domain shop --descriptors account=acme
domain shop at 2026-11-21T12:21:21Z

descriptor 0: account=acme
  level 1: account=acme
    > account_acme   exact value
    - account        it matches any value, but a rule with a matching value takes precedence
    - account_staff  another value
    - other keys of this level: path, country
  limit        50 per SECOND (a window of 1 s)
  rule         shop.account_acme
  cache key    shop_account_acme_1795263681
  window ends  2026-11-21T12:21:22Z
\`\`\``,
  simulate: "[testing-rules.md](testing-rules.md) has an example.",
  bench: "[operations.md](operations.md#size-a-machine) has examples.",
  health: `\`\`\`console try
$ weir health --url http://localhost:8080
OK
\`\`\``,
  endpoints: `\`\`\`console webhooks
$ weir endpoints add http://127.0.0.1:9000/hooks --event order.created --concurrency 8
id                2a408522-2e64-4252-85b6-a125e9aea5da
url               http://127.0.0.1:9000/hooks
events            order.created
description       -
enabled           true
headers           -
concurrency       8
standardWebhooks  true
createdAt         2026-11-22T02:41:54.576Z
updatedAt         2026-11-22T02:41:54.576Z
secret            whsec_T8HLCZAOYdqF/89Zr51ZZSZPzwfCinG8UVtP29yatBo=

secrets:
  id                                    createdAt                 activeAt                  signs  state
  5cd0fdac-c817-4fc7-8bcb-0388d66b6bba  2026-11-22T02:41:54.576Z  2026-11-22T02:41:54.576Z  true   signing
Save the secret now: it is shown only once
$ weir endpoints list
id                                    url                          events         enabled  failingSince  description
2a408522-2e64-4252-85b6-a125e9aea5da  http://127.0.0.1:9000/hooks  order.created  true     -             -
\`\`\``,
  counters: `\`\`\`text
$ weir counters peek --domain shop --descriptors account=bob
descriptors:
  descriptor   limited  rule          cacheKey                     limit  unit    windowSeconds  used  remaining  resetsAt
  account=bob  true     shop.account  shop_account_bob_1795327500  5      MINUTE  60             3     2          2026-11-22T06:06:00Z
\`\`\``,
  triggers: `\`\`\`console webhooks
$ weir triggers create order-intake --workflow order-intake --require-idempotency-key
id                     fe019132-4f4e-4b4e-b21b-826c5921980a
name                   order-intake
workflow               order-intake
enabled                true
requireIdempotencyKey  true
onBodyMismatch         replay
onLimitError           deny
createdAt              2026-11-22T02:41:54.576Z
updatedAt              2026-11-22T02:41:54.576Z
key                    svct_aZxC_3igAZgC6Y7_V8eKQEaVPn9WNH5vmULRidtCtNM

keys:
  id                                    lastFour  createdAt
  1485160c-000a-406b-800e-b26c380bd7bd  CtNM      2026-11-22T02:41:54.576Z
Save the key now: it is shown only once
\`\`\``,
  "event-keys": `\`\`\`console webhooks
$ weir event-keys create billing --kind 'invoice.*'
id         8401763f-298a-4834-b4e7-a6cd9a18a345
name       billing
kinds      invoice.*
lastFour   o2Ts
createdAt  2026-11-22T02:41:54.576Z
key        svce_xc15XkVbHxqcgjFRcrP6EVKJE-eZkzoFmJttDK1o2Ts
Save the key now: it is shown only once
\`\`\``,
  events: `\`\`\`console webhooks
$ weir events post order.created --data '{"id":"1001"}' --idempotency-key order-1001
id          c6e74d70-b08b-4d9a-b1d4-6dfcc646cdfa
deliveries  1
Next: weir deliveries list --event-id c6e74d70-b08b-4d9a-b1d4-6dfcc646cdfa
\`\`\``,
  deliveries: `\`\`\`console webhooks
$ weir deliveries list --event-id c6e74d70-b08b-4d9a-b1d4-6dfcc646cdfa
id                                    event          endpointId                            state     attempts  lastError                            nextAttemptAt
bcf6bfce-173c-4a93-bc17-29be7d6c3db2  order.created  2a408522-2e64-4252-85b6-a125e9aea5da  retrying  2         connection refused (127.0.0.1:9000)  2026-11-22T02:42:05.173Z
$ weir deliveries why bcf6bfce-173c-4a93-bc17-29be7d6c3db2
the next attempt starts at 2026-11-22T02:42:05.173Z, retry 2 of 8 (30 seconds after the first failure); last attempt: connection refused (127.0.0.1:9000)
\`\`\``,
  workflows: `\`\`\`console try
$ weir workflows check config/workflows
config/workflows: valid: 1 file, 1 valid workflow, 0 errors, 0 warnings
\`\`\``,
  executions: `\`\`\`text
$ weir executions list --state failed --since 24h
$ weir executions show 6bdb9dc3-e8f4-42fc-90e4-9ff087fde12f
\`\`\``,
  audit: `\`\`\`text
$ weir audit --action delivery.failed --all --json
\`\`\``,
  store: `\`\`\`text
$ weir store backup /backup/weir.db --store /var/lib/weir/weir.db
/backup/weir.db: 258048 bytes, schema version 4
The copy does not contain the encryption key: back up the key separately
\`\`\``,
};
