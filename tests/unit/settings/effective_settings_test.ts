import { assertEquals } from "#assert";
import { effectiveSettings } from "../../../src/settings/effective_settings.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import type { Environment } from "../../../src/settings/setting.ts";
import { settingEntries } from "../../../src/settings/table.ts";

const SECRET = [undefined, "environment", undefined];

/** A setting in an environment: value, source, and what applies without a value. */
const SHOWN: readonly (readonly [
  what: string,
  env: Environment,
  name: string,
  shown: readonly (string | undefined)[],
])[] = [
  ["a default", {}, "PORT", ["8080", "default", undefined]],
  ["a value", { PORT: "0x10" }, "PORT", ["0x10", "environment", undefined]],
  ["an empty value is none", { PORT: "" }, "PORT", ["8080", "default", undefined]],
  ["a secret", { ADMIN_TOKEN: "never-to-be-shown" }, "ADMIN_TOKEN", SECRET],
  ["an address without credentials", { KV_URL: "redis.internal:6379" }, "KV_URL", [
    "redis.internal:6379",
    "environment",
    undefined,
  ]],
  ["an address with a user and a password", { WEBHOOK_STORE: "postgres://u:p@w@h/db" }, "WEBHOOK_STORE", [
    "postgres://***@h/db",
    "environment",
    undefined,
  ]],
  ["an address with parameters", { WEIR_URL: "http://u:pw@h/?token=t" }, "WEIR_URL", [
    "http://***@h/?***",
    "environment",
    undefined,
  ]],
  ["several addresses", { KV_URL: "redis://:one@a:1,redis://:two@b:2" }, "KV_URL", [
    "redis://***@b:2",
    "environment",
    undefined,
  ]],
  ["an address that is invalid", { WEBHOOK_PROXY: "pw@h" }, "WEBHOOK_PROXY", SECRET],
  ["a secret that is not set", {}, "ADMIN_TOKEN", [
    undefined,
    "default",
    "the administration API returns 404",
  ]],
];

for (const [what, env, name, shown] of SHOWN) {
  Deno.test(`effective settings: ${what}`, () => {
    const found = effectiveSettings(env).filter((one) => one.name === name);
    assertEquals(found.flatMap((one) => [one.value, one.source, one.whenUnset]), [...shown]);
  });
}

Deno.test("effective settings: every setting once, in the order of the table", () => {
  const shown = effectiveSettings({}).map(({ name }) => name);
  assertEquals(shown, settingEntries().map(([name]) => name as string));
});

Deno.test("effective settings: no secret is shown, whatever its name", () => {
  const env = Object.fromEntries(
    settingEntries().map(([name]) => [name.replace(/<.*>/, "ONE"), `value-of-${name}`]),
  );
  const shown = effectiveSettings(env);
  const secrets = settingEntries().filter(([, { secret, isAddress }]) => secret && !isAddress)
    .map(([name]) => `value-of-${name}`);
  const text = JSON.stringify(shown);
  assertEquals(secrets.length > 8, true);
  assertEquals(secrets.filter((value) => text.includes(`"${value}"`)), []);
  const hidden = new Set(shown.filter(({ isSecret }) => isSecret).map(({ name }) => name));
  assertEquals(
    settingEntries().filter(([name, { secret, isAddress }]) =>
      secret && !isAddress && !hidden.has(name.replace(/<.*>/, "ONE"))
    ),
    [],
  );
});

Deno.test("effective settings: the variables of a family, or its placeholder", () => {
  const family = settingEntries().map(([name]) => name as string).find((name) => name.includes("<")) ?? "";
  const [start = "", end = ""] = family.split(/<.*>/);
  const names = (env: Environment) =>
    effectiveSettings(env).map(({ name }) => name).filter((name) =>
      name.startsWith(start) && name.endsWith(end)
    );
  assertEquals(names({}).includes(family), true);
  const [b, a] = [`${start}B${end}`, `${start}A${end}`];
  const shown = names({ [b]: "1", [a]: "2", [`${start}C${end}`]: "" });
  assertEquals([shown.includes(family), shown.indexOf(b) - shown.indexOf(a), shown.length], [false, 1, 2]);
});

Deno.test("effective settings: a value of a file names the variable of the file", async () => {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "a-token-that-is-never-shown-0123456789");
    const { effective } = readSettings({ BACKEND_TYPE: "memory", ADMIN_TOKEN_FILE: file });
    const { value, source } = effective.find(({ name }) => name === "ADMIN_TOKEN") ?? {};
    assertEquals([value, source], [undefined, "ADMIN_TOKEN_FILE"]);
  } finally {
    await Deno.remove(file);
  }
});
