import { assertEquals, assertNotEquals } from "@std/assert";
import { folderFingerprint, loadRuleFiles, MAX_FILE_BYTES } from "../../src/config/rule_files.ts";
import { readRuleFile, readRuleFileInTurns } from "../../src/config/yaml.ts";
import { problemText } from "../../src/ratelimit/rule_source.ts";

const OPTIONS = { ignoreDotFiles: false, whenMissing: "make it" };

/** The text of a rule file with this domain and nothing else. */
function domain(name: string): string {
  return `domain: ${name}\ndescriptors: []\n`;
}

interface Found {
  readonly domains: string[] | undefined;
  readonly problems: string[];
}

/** Fills a new folder and reads it; the folder stands as `DIR` in what was found. */
async function found(fill: (folder: string) => Promise<void>, ignoreDotFiles = false): Promise<Found> {
  const folder = await Deno.makeTempDir();
  try {
    await fill(folder);
    const { load } = await loadRuleFiles(folder, { ...OPTIONS, ignoreDotFiles });
    return {
      domains: load.sources?.map((source) => source.domain),
      problems: load.problems.map((problem) =>
        `${problem.severity} ${problemText(problem)}`.replaceAll(folder, "DIR")
      ),
    };
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

const CASES: readonly (readonly [name: string, fill: (folder: string) => Promise<void>, found: Found])[] = [
  ["files by name, both endings, nothing else", async (folder) => {
    await Deno.writeTextFile(`${folder}/b.yaml`, domain("b"));
    await Deno.writeTextFile(`${folder}/a.yml`, domain("a"));
    await Deno.writeTextFile(`${folder}/README.md`, "not rules");
    await Deno.writeTextFile(`${folder}/c.yaml~`, "not rules");
    await Deno.mkdir(`${folder}/below.yaml`);
    await Deno.writeTextFile(`${folder}/below.yaml/d.yaml`, domain("d"));
    await Deno.writeTextFile(`${folder}/.dot.yaml`, domain("dot"));
  }, { domains: ["dot", "a", "b"], problems: [] }],
  ["symbolic links to files, none to folders", async (folder) => {
    await Deno.mkdir(`${folder}/v1`);
    await Deno.writeTextFile(`${folder}/v1/a`, domain("a"));
    await Deno.symlink("v1/a", `${folder}/a.yaml`);
    await Deno.symlink("v1", `${folder}/b.yaml`);
  }, { domains: ["a"], problems: [] }],
  ["empty folder", async () => {}, {
    domains: [],
    problems: [
      "warning DIR: there are no rule files here, so nothing is limited; put files *.yaml or *.yml into this folder",
    ],
  }],
  ["folder missing", (folder) => Deno.remove(folder), {
    domains: undefined,
    problems: ["error DIR: Cannot read the folder of rule files: it does not exist; make it"],
  }],
  ["folder is a file", async (folder) => {
    await Deno.remove(folder);
    await Deno.writeTextFile(folder, "");
  }, {
    domains: undefined,
    problems: ["error DIR: Cannot read the folder of rule files: it is not a folder; name a folder"],
  }],
  ["link to nothing", async (folder) => {
    await Deno.symlink("nothing", `${folder}/a.yaml`);
    await Deno.writeTextFile(`${folder}/b.yaml`, domain("b"));
  }, {
    domains: ["b"],
    problems: [
      "error DIR/a.yaml: Cannot read the file: it does not exist; correct the symbolic link, or remove it",
    ],
  }],
  ["not UTF-8", (folder) => Deno.writeFile(`${folder}/a.yaml`, new Uint8Array([0x64, 0xff])), {
    domains: [],
    problems: ["error DIR/a.yaml: Cannot read the file: it is not UTF-8; save it as UTF-8"],
  }],
  ["too large", async (folder) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, "");
    await Deno.truncate(`${folder}/a.yaml`, MAX_FILE_BYTES + 1);
  }, {
    domains: [],
    problems: [
      "error DIR/a.yaml: Cannot read the file: it is larger than 67108864 bytes; make several of it",
    ],
  }],
  ["problems of all files", async (folder) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, "domain: a\n");
    await Deno.writeTextFile(`${folder}/b.yaml`, "- b\n");
  }, {
    domains: ["a"],
    problems: [
      "warning DIR/a.yaml:1:1: descriptors: there are no descriptors, so nothing in this domain is limited; " +
      "write 'descriptors: []' if that is meant",
      "error DIR/b.yaml:1:1: the file must be a mapping with domain and descriptors, not a list",
    ],
  }],
];

for (const [name, fill, expected] of CASES) {
  Deno.test(`rule files: ${name}`, async () => assertEquals(await found(fill), expected));
}

Deno.test("rule files: dot files are left out when asked", async () => {
  const fill = async (folder: string) => {
    await Deno.writeTextFile(`${folder}/.dot.yaml`, "- not rules");
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
  };
  assertEquals(await found(fill, true), { domains: ["a"], problems: [] });
});

Deno.test("rule files: the fingerprint changes with every change of a rule file, and with nothing else", async () => {
  const folder = await Deno.makeTempDir();
  const fingerprint = () => folderFingerprint(folder, OPTIONS);
  try {
    const seen = [await fingerprint()];
    const changes: (() => Promise<void>)[] = [
      () => Deno.writeTextFile(`${folder}/a.yaml`, domain("a")),
      () => Deno.utime(`${folder}/a.yaml`, 1_000, 1_000),
      () => Deno.truncate(`${folder}/a.yaml`, 1),
      () => Deno.rename(`${folder}/a.yaml`, `${folder}/b.yaml`),
      () => Deno.remove(`${folder}/b.yaml`),
    ];
    for (const change of changes) {
      await change();
      const now = await fingerprint();
      assertNotEquals(now, seen.at(-1));
      seen.push(now);
      await Deno.writeTextFile(`${folder}/other`, String(seen.length));
      assertEquals(await fingerprint(), now);
    }
    assertEquals(seen.at(-1), seen[0]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("rule files: a large file is read with pauses, and what is found is the same", async () => {
  const rules = Array.from({ length: 4_000 }, (_, index) => `- key: k${index}\n  rate_limit: {unit: day}\n`);
  const text = `domain: d\ndescriptors:\n${rules.join("")}`;
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const file = await readRuleFileInTurns("r.yaml", text);
  clearInterval(timer);
  assertEquals(file, readRuleFile("r.yaml", text));
  assertEquals(turns > 5, true, `${turns} turns`);
});
