import { assertEquals } from "#assert";
import { ranOver, words } from "../../harness/administration_fixture.ts";

const GOOD = {
  "a.yaml": "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 1}\n",
};
const SLIDING = {
  "a.yaml": GOOD["a.yaml"].replace("requests_per_unit: 1", "requests_per_unit: 1, algorithm: sliding_window"),
};
const DUBIOUS = {
  "a.yaml": "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unlimited: true, shadow_mode: true}\n",
};
const REPORTING = {
  "a.yaml":
    "domain: a\ndescriptors:\n- key: k\n  events: [over_limit]\n  rate_limit: {unit: day, requests_per_unit: 1}\n",
};
const TWICE = { "a.yaml": "domain: a\ndescriptors: []\n", "b.yml": "domain: a\ndescriptors: []\n" };
const BAD = {
  "a.yaml": "domain: a\ndescriptors:\n- key: k\n- key: k\n  shadow_mode: 1\n",
  "b.yaml": "domain: b\ndescriptors:\n\t- key: k\n",
};

const SHARED = {
  "a.yaml": "domain: a\ndescriptors:\n- {key: k, value: a*b, share_threshold: true}\n" +
    "- {key: k, value: '*.png', share_threshold: true}\n- {key: k, value: plain, share_threshold: true}\n",
};

/** Fields of other services that Weir does not read. */
const MOVED = {
  "a.yaml": "domain: a\ndescriptors:\n- key: k\n  descriptors:\n  - key: us*r\n    value: v*\n",
  "team/b.yaml": "domain: b\ndescriptors: []\n",
};

const UNREAD = {
  "config/a.yaml": GOOD["a.yaml"],
  "config/b.json": '{ "domain": "b", "descriptors": [] }',
  "config/README.md": "The domain: a\n",
  "config.team.yaml": "domain: team\ndescriptors: []\n",
  "config.d/deep/c.yaml": "domain: c\ndescriptors: []\n",
  "config.d/values.yaml": "image: weir\n",
  "configuration.yaml": "domain: d\ndescriptors: []\n",
};
const NEXT_TO =
  "warning: this file has a domain but is ignored, since it is next to the folder; move it into DIR/config";
const UNREAD_WARNING =
  "DIR/config/b.json: warning: this file has a domain but is ignored: its name does not end with .yaml or .yml; " +
  "rename it\n";
const UNREAD_WARNINGS =
  `DIR/config.d/deep/c.yaml: ${NEXT_TO}\nDIR/config.team.yaml: ${NEXT_TO}\n${UNREAD_WARNING}`;

const WARNING = "DIR/a.yaml:4:33: descriptors[0].rate_limit.shadow_mode: warning: has no effect here; " +
  "it belongs in a descriptor\n";
const DUPLICATE =
  "DIR/b.yml:1:9: domain: duplicate domain 'a' in config file; it is already in DIR/a.yaml:1:9, " +
  "and MERGE_DOMAIN_CONFIG=true would allow that\n";

const NOT_IN_MEMCACHED =
  "DIR/a.yaml:4:60: descriptors[0].rate_limit.algorithm: sliding_window cannot be counted in memcached " +
  "(BACKEND_TYPE=mc); remove it for a fixed window, or set BACKEND_TYPE to kv or memory\n";
const VALID = "valid: 1 file with rules, 1 domain, 0 errors, 0 warnings";

interface Case {
  /** Arguments of the command; the folder alone when absent. */
  readonly line?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** The last line without the folder; that of one good file when absent. */
  readonly verdict?: string;
  readonly stderr?: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "good files": { files: GOOD },
  "good files, strictly": { line: "--strict DIR", files: GOOD },
  "a warning": {
    files: DUBIOUS,
    verdict: "valid: 1 file with rules, 1 domain, 0 errors, 1 warning",
    stderr: WARNING,
  },
  "a warning, strictly": {
    line: "DIR -strict",
    files: DUBIOUS,
    verdict: "invalid: 1 file with rules, 1 domain, 0 errors, 1 warning",
    stderr: WARNING,
  },
  "a rule with events, where there is a store": {
    line: "--strict DIR",
    files: REPORTING,
    environment: { WEBHOOK_STORE: "weir.db" },
  },
  "a rule with events, where there is none": {
    line: "--strict DIR",
    files: REPORTING,
    verdict: "invalid: 1 file with rules, 1 domain, 0 errors, 1 warning",
    stderr: "DIR/a.yaml:3:3: descriptors[0].events: warning: has no effect without WEBHOOK_STORE, which " +
      "stores and delivers events; set it, or remove events\n",
  },
  "rules that would go unnoticed": {
    files: MOVED,
    verdict: "valid: 1 file with rules, 1 domain, 0 errors, 2 warnings",
    stderr:
      "DIR/a.yaml:5:5: descriptors[0].descriptors[0].key: warning: '*' stands for itself in a key, so this " +
      "rule is for requests with this very key; patterns are for values alone\n" +
      "DIR/team/b.yaml: warning: this file is in a subfolder and is ignored; move it into DIR\n",
  },
  "every problem of every file": {
    files: BAD,
    verdict: "invalid: 1 file with rules, 3 errors, 0 warnings",
    stderr: "DIR/a.yaml:4:3: descriptors[1]: duplicate descriptor composite key 'a.k'; " +
      "the first one is at DIR/a.yaml:3:3\n" +
      "DIR/a.yaml:5:16: descriptors[1].shadow_mode: expected true or false, got '1'\n" +
      "DIR/b.yaml:3:1: a tab is used as indentation; use spaces\n",
  },
  "a domain twice": {
    files: TWICE,
    verdict: "invalid: 2 files with rules, 1 error, 0 warnings",
    stderr: DUPLICATE,
  },
  "a domain twice, merging": {
    line: "-merge=true -- DIR",
    files: TWICE,
    verdict: "valid: 2 files with rules, 1 domain, 0 errors, 0 warnings",
  },
  "files that are none by name": {
    line: "DIR/config",
    files: UNREAD,
    verdict: "valid: 1 file with rules, 1 domain, 0 errors, 3 warnings",
    stderr: UNREAD_WARNINGS,
  },
  "files that are none by name, strictly": {
    line: "--strict DIR/config",
    files: UNREAD,
    verdict: "invalid: 1 file with rules, 1 domain, 0 errors, 3 warnings",
    stderr: UNREAD_WARNINGS,
  },
  "files that are none by name, with a folder that is watched itself": {
    line: "DIR/config",
    files: UNREAD,
    environment: { RUNTIME_WATCH_ROOT: "false" },
    verdict: "valid: 1 file with rules, 1 domain, 0 errors, 1 warning",
    stderr: UNREAD_WARNING,
  },
  "an empty folder": {
    files: {},
    verdict: "valid: 0 files with rules, 0 domains, 0 errors, 1 warning",
    stderr: "DIR: warning: there are no rule files here, so nothing is limited; " +
      "put files *.yaml or *.yml into this folder\n",
  },
  "a domain twice, merging by the environment": {
    files: TWICE,
    environment: { MERGE_DOMAIN_CONFIG: "true", KV_URL: "a wrong setting that does not matter here" },
    verdict: "valid: 2 files with rules, 1 domain, 0 errors, 0 warnings",
  },
  "a domain twice, the flag before the environment": {
    line: "DIR --merge=false",
    files: TWICE,
    environment: { MERGE_DOMAIN_CONFIG: "true" },
    verdict: "invalid: 2 files with rules, 1 error, 0 warnings",
    stderr: DUPLICATE,
  },
  "files that start with a dot, ignored by the environment": {
    files: { ...GOOD, ".b.yaml": "wrong" },
    environment: { RUNTIME_IGNOREDOTFILES: "true" },
  },
  "another algorithm": { files: SLIDING },
  "another algorithm, with memcached by the environment": {
    files: SLIDING,
    environment: { BACKEND_TYPE: "mc" },
    verdict: "invalid: 1 file with rules, 1 error, 0 warnings",
    stderr: NOT_IN_MEMCACHED,
  },
  "another algorithm, with memcached by its other name": {
    files: SLIDING,
    environment: { BACKEND_TYPE: "memcache" },
    verdict: "invalid: 1 file with rules, 1 error, 0 warnings",
    stderr: NOT_IN_MEMCACHED,
  },
  "windows on two servers, by the settings of envoyproxy/ratelimit": {
    files: {
      "a.yaml":
        "domain: a\ndescriptors:\n- key: k\n  rate_limits:\n  - {unit: second, requests_per_unit: 1}\n" +
        "  - {unit: day, requests_per_unit: 9, algorithm: sliding_window}\n",
    },
    environment: { BACKEND_TYPE: "redis", REDIS_PERSECOND: "true" },
    verdict: "invalid: 1 file with rules, 1 error, 0 warnings",
    stderr:
      "DIR/a.yaml:3:3: descriptors[0].rate_limits: with an algorithm other than fixed_window, a hit counts in all windows " +
      "or in none, but KV_PERSECOND counts those per second on another server; use two rules, fixed windows, or " +
      "KV_PERSECOND=false\n",
  },
  "a '*' anywhere in a shared value": {
    files: SHARED,
    verdict: "invalid: 1 file with rules, 1 error, 0 warnings",
    stderr: "DIR/a.yaml:5:3: descriptors[2].share_threshold: " +
      "share_threshold requires a value with '*', 'regex' or 'in', but found 'plain'\n",
  },
};

Deno.test("weir check: a folder that does not exist is wrong usage", async () => {
  assertEquals(await ranOver({}, "check DIR/none"), {
    code: 2,
    stdout: "DIR/none: invalid: 0 files with rules, 1 error, 0 warnings\n",
    stderr: "DIR/none: Cannot read the folder of rule files: it does not exist; " +
      "expected the folder of the rule files\n",
  });
});

Deno.test("weir check: every one of many problems is reported", async () => {
  const { code, stderr } = await ranOver({
    "a.yaml": `domain: a\ndescriptors:\n${"- a\n".repeat(300)}`,
  }, "check DIR");
  const line = (number: number) =>
    `DIR/a.yaml:${number + 3}:3: descriptors[${number}]: expected a mapping such as 'key: a', got 'a'\n`;
  assertEquals({ code, stderr }, {
    code: 1,
    stderr: Array.from({ length: 300 }, (_, i) => line(i)).join(""),
  });
});

for (
  const [name, { line = "DIR", files, environment = {}, verdict = VALID, stderr = "" }] of Object.entries(
    CASES,
  )
) {
  Deno.test(`weir check: ${name}`, async () => {
    const folder = words(line).find((word) => word.startsWith("DIR"));
    const expected = { code: verdict.startsWith("valid") ? 0 : 1, stdout: `${folder}: ${verdict}\n`, stderr };
    assertEquals(await ranOver(files, `check ${line}`, { environment }), expected);
  });
}
