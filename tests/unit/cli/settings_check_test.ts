import { assertEquals } from "#assert";
import { ran } from "../../harness/administration_fixture.ts";

const TOKEN = "a-token-that-must-never-be-printed-0123456789";
const MEMORY = { BACKEND_TYPE: "memory" };

interface Case {
  readonly flags?: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly code: number;
  readonly stdout: string;
  readonly stderr?: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "valid settings, without their defaults": {
    environment: { ...MEMORY, ADMIN_TOKEN: TOKEN, HOST: "", HOME: "/root" },
    code: 0,
    stdout: `setting       value     source
BACKEND_TYPE  memory    environment
ADMIN_TOKEN   (secret)  environment
environment: valid: 2 settings, 0 errors, 0 warnings
`,
  },
  "invalid settings are shown, and each has a problem": {
    environment: { ...MEMORY, PORT: "abc", LOG_LEVEL: "loud" },
    code: 1,
    stdout: `setting       value   source
LOG_LEVEL     loud    environment
PORT          abc     environment
BACKEND_TYPE  memory  environment
environment: invalid: 3 settings, 2 errors, 0 warnings
`,
    stderr: 'Invalid LOG_LEVEL "loud": expected trace, debug, info, warning, error, fatal or panic\n' +
      'Invalid PORT "abc": expected an integer from 0 to 65535\n',
  },
  "a rule across settings": {
    environment: {},
    code: 1,
    stdout: "environment: invalid: 0 settings, 1 error, 0 warnings\n",
    stderr:
      "KV_URL is not set: expected KV_URL=host:port, or BACKEND_TYPE=memory to count only in this process\n",
  },
  "a warning": {
    environment: { ...MEMORY, KV_TIMOUT: "1s" },
    code: 0,
    stdout: `setting       value   source
BACKEND_TYPE  memory  environment
environment: valid: 1 setting, 0 errors, 1 warning
`,
    stderr: "warning: KV_TIMOUT is not a setting; did you mean KV_TIMEOUT?\n",
  },
  "aliases, which are no warnings": {
    flags: "--strict",
    environment: {
      BACKEND_TYPE: "redis",
      REDIS_URL: "a:1",
      REDIS_AUTH: TOKEN,
      KV_TYPE: "single",
      REDIS_TYPE: "cluster",
    },
    code: 0,
    stdout: `setting       value     source
BACKEND_TYPE  redis     environment
KV_URL        a:1       REDIS_URL
KV_TYPE       single    environment
KV_AUTH       (secret)  REDIS_AUTH
environment: valid: 4 settings, 0 errors, 0 warnings
`,
    stderr: "note: KV_AUTH is set from REDIS_AUTH\nnote: REDIS_TYPE is ignored: KV_TYPE is set\n" +
      'note: KV_URL is set from REDIS_URL\nnote: BACKEND_TYPE "redis" is read as kv\n',
  },
  "a warning with --strict": {
    flags: "--strict --output yaml",
    environment: { ...MEMORY, KV_TIMOUT: "1s" },
    code: 1,
    stdout: `valid: false
errors: []
warnings:
  - "KV_TIMOUT is not a setting; did you mean KV_TIMEOUT?"
settings:
  - name: BACKEND_TYPE
    value: memory
    secret: false
    source: environment
`,
  },
  "a secret that is invalid": {
    flags: "--json",
    environment: { ...MEMORY, WEBHOOK_ENCRYPTION_KEY: "short-secret" },
    code: 1,
    stdout: `${
      JSON.stringify(
        {
          valid: false,
          errors: [
            "Invalid WEBHOOK_ENCRYPTION_KEY (value not shown): expected a comma list whose items are each 32 bytes in base64",
          ],
          warnings: [],
          settings: [
            { name: "BACKEND_TYPE", value: "memory", secret: false, source: "environment" },
            { name: "WEBHOOK_ENCRYPTION_KEY", secret: true, source: "environment" },
          ],
        },
        undefined,
        2,
      )
    }\n`,
  },
};

for (const [name, { flags = "", environment, code, stdout, stderr = "" }] of Object.entries(CASES)) {
  Deno.test(`weir settings check: ${name}`, async () => {
    assertEquals(await ran(`settings check ${flags}`, { environment }), { code, stdout, stderr });
  });
}

Deno.test("weir settings check: a secret in a file, and a file that is missing", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, `${TOKEN}\n`);
  const environment = { ...MEMORY, ADMIN_TOKEN_FILE: file, KV_AUTH_FILE: "/no/such/file" };
  const { code, stdout, stderr } = await ran("settings check", { environment });
  await Deno.remove(file);
  assertEquals([code, stderr.startsWith('Invalid KV_AUTH_FILE "/no/such/file": ')], [1, true]);
  assertEquals(
    stdout,
    `setting       value     source
BACKEND_TYPE  memory    environment
ADMIN_TOKEN   (secret)  ADMIN_TOKEN_FILE
environment: invalid: 2 settings, 1 error, 0 warnings
`,
  );
});

Deno.test("weir settings check --all: every setting, with its default or what applies without a value", async () => {
  const environment = { ...MEMORY, PORT: "81" };
  const { stdout } = await ran("settings check --all --json", { environment });
  const settings: ({ readonly name: string } & Readonly<Record<string, unknown>>)[] =
    JSON.parse(stdout).settings;
  const shown = (wanted: string) => settings.find(({ name }) => name === wanted);
  assertEquals(["PORT", "HOST", "ADMIN_TOKEN"].map(shown), [
    { name: "PORT", value: "81", secret: false, source: "environment" },
    { name: "HOST", value: "0.0.0.0", secret: false, source: "default" },
    { name: "ADMIN_TOKEN", secret: true, source: "default" },
  ]);
  const { stdout: table } = await ran("settings check --all", { environment });
  assertEquals(table.split("\n").length, settings.length + 3);
});
