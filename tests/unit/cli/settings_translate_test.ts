import { assertEquals } from "#assert";
import { ran } from "../../harness/administration_fixture.ts";

interface Case {
  readonly environment?: Readonly<Record<string, string>>;
  /** The text of a file. */
  readonly file?: string;
  readonly code?: number;
  readonly stdout: string;
  readonly stderr: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "the names of envoyproxy/ratelimit become those of Weir": {
    environment: { BACKEND_TYPE: "redis", REDIS_URL: "redis:6379", USE_STATSD: "false", HOME: "/root" },
    stdout: "BACKEND_TYPE=kv\nKV_URL=redis:6379\nUSE_PUSH_STATS=false\n",
    stderr: "",
  },
  "secrets are named, and not shown": {
    environment: { REDIS_URL: "redis://u:word@redis:6379", REDIS_AUTH: "word", KV_SENTINEL_AUTH: "word" },
    stdout: "",
    stderr: "KV_URL: copy the value of REDIS_URL\nKV_AUTH: copy the value of REDIS_AUTH\n" +
      "KV_SENTINEL_AUTH: copy the value of KV_SENTINEL_AUTH\n",
  },
  "a file, with comments, quotes and values for a shell": {
    file: "# comment\nexport REDIS_URL='redis:6379'\nRUNTIME_ROOT=\"/etc/my rules\"\n",
    stdout: "RUNTIME_ROOT='/etc/my rules'\nKV_URL=redis:6379\n",
    stderr: "",
  },
  "a variable of both names": {
    environment: { REDIS_URL: "a:1", KV_URL: "b:2" },
    stdout: "KV_URL=b:2\n",
    stderr: "note: REDIS_URL is ignored: KV_URL is set\n",
  },
  "a line that is no variable is not shown": {
    file: "REDIS_URL=a:1\nword\n",
    code: 2,
    stdout: "",
    stderr: 'Cannot read "FILE": variable 2 is no NAME=VALUE\n',
  },
};

for (const [name, { environment = {}, file, code = 0, stdout, stderr }] of Object.entries(CASES)) {
  Deno.test(`weir settings translate: ${name}`, async () => {
    const path = file === undefined ? undefined : await Deno.makeTempFile();
    if (path !== undefined && file !== undefined) await Deno.writeTextFile(path, file);
    const flags = path === undefined ? [] : ["--file", path];
    const found = await ran(["settings", "translate", ...flags], { environment });
    if (path !== undefined) await Deno.remove(path);
    const shown = path === undefined ? found.stderr : found.stderr.replaceAll(path, "FILE");
    assertEquals({ ...found, stderr: shown }, { code, stdout, stderr });
  });
}
