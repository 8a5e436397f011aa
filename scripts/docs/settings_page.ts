import { defaultText, settingGroups } from "../../src/settings/docs.ts";
import type { Setting } from "../../src/settings/setting.ts";
import { table } from "./generated_page.ts";

const HEAD = `# Settings

This page lists every setting of Weir, with its default and its meaning. [\`weir help settings\`](cli.md)
prints the same list, and [\`weir settings check\`](cli.md#weir-settings) validates your values.
Each setting is an environment variable:

\`\`\`sh
BACKEND_TYPE=memory RUNTIME_ROOT=config RUNTIME_APPDIRECTORY=rules RUNTIME_WATCH_ROOT=false \\
  LOG_LEVEL=info weir serve &
curl --retry 20 --retry-connrefused --retry-delay 1 -fsS http://localhost:8080/healthcheck
\`\`\`

## How settings are read

- Weir reads settings from environment variables only, once, when it starts. To change a setting, restart Weir.
  [operations.md](operations.md) describes what is reloaded without a restart.
- A variable that is set but empty counts as unset.
- Every setting that can contain a secret can be read from a file instead: \`KV_AUTH_FILE\` names the file for
  \`KV_AUTH\`. See [secrets in files](operations.md#keep-secrets-in-files).
- A duration is a number with a unit: \`ns\`, \`us\`, \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`. Examples: \`150us\`,
  \`500ms\`, \`1m30s\`, \`30d\`. \`0\` requires no unit.
- A boolean is \`true\` or \`false\`. \`1\`, \`t\`, \`T\`, \`TRUE\` and \`True\` mean \`true\`; \`0\`, \`f\`, \`F\`, \`FALSE\` and
  \`False\` mean \`false\`.
- An integer is decimal, or hexadecimal with the prefix \`0x\`.
- Items of a list are separated by commas. Spaces around an item are ignored.
- Weir checks all settings before it opens a port. If some are invalid, it prints one line for each and exits
  with code 2. It never prints the value of a secret.
- [api.md](api.md) describes the HTTP paths on this page.
- An alias is the name that envoyproxy/ratelimit has for a setting, such as \`REDIS_URL\` for \`KV_URL\`. Weir
  reads it if the setting itself is not set, and logs one line for each: see [migration.md](migration.md).
- Kubernetes puts an address such as \`tcp://10.0.0.1:80\` into \`GRPC_PORT\` if a service in the namespace is
  named \`grpc\`. Weir ignores such a value in any variable that ends with \`_PORT\`, and logs a line.
- Weir logs a warning for a variable whose name is almost that of a setting, such as \`KV_TIMOUT\`.`;

/** docs/settings.md. */
export function settingsPage(): string {
  const groups = settingGroups().map(({ group, entries }) => {
    const rows = entries.map(([name, setting]) => [`\`${name}\``, defaultCell(setting), setting.doc]);
    return `## ${group}\n\n${table(["Variable", "Default", "Meaning"], rows)}`;
  });
  return [HEAD, ...groups].join("\n\n");
}

function defaultCell(setting: Setting): string {
  const text = defaultText(setting);
  return setting.default === undefined && setting.whenUnset !== undefined ? `unset: ${text}` : text;
}
