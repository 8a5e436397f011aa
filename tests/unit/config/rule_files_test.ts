import { assertEquals, assertNotEquals } from "@std/assert";
import { ruleFileLimits } from "../../../src/config/rule_file_reader.ts";
import { folderFingerprint, loadRuleFiles, type RuleFilesOptions } from "../../../src/config/rule_files.ts";
import { problemText } from "../../../src/base/problem.ts";

const OPTIONS = { ignoreDotFiles: false, whenMissing: "make it" };

/** The text of a rule file with this domain and nothing else. */
function domain(name: string): string {
  return `domain: ${name}\ndescriptors: []\n`;
}

const MEBIBYTE = 1024 * 1024;

/** Makes a rule file of this size that is a comment for the most part. */
async function padded(path: string, bytes: number): Promise<void> {
  const text = `${domain("padded")}#`;
  await Deno.writeTextFile(path, text + "x".repeat(bytes - text.length));
}

interface Found {
  readonly domains: string[] | undefined;
  readonly problems: string[];
}

/** Fills a new folder and reads it; the folder stands as `DIR` in what was found. */
async function found(
  fill: (folder: string) => Promise<void>,
  options: Partial<RuleFilesOptions> = {},
): Promise<Found> {
  const folder = await Deno.makeTempDir();
  try {
    await fill(folder);
    const { load } = await loadRuleFiles(folder, { ...OPTIONS, ...options });
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

const ANOTHER_NAME =
  "this file has a domain but is ignored: its name does not end with .yaml or .yml; rename it";
const BELOW = Array.from({ length: 30 }, (_, index) => `${index + 10}.yaml`);

const CASES: readonly (readonly [name: string, fill: (folder: string) => Promise<void>, found: Found])[] = [
  ["files by name, both endings, nothing else", async (folder) => {
    await Deno.writeTextFile(`${folder}/b.yaml`, domain("b"));
    await Deno.writeTextFile(`${folder}/a.yml`, domain("a"));
    await Deno.writeTextFile(`${folder}/README.md`, "not rules");
    await Deno.writeTextFile(`${folder}/c.yaml~`, "not rules");
    await Deno.mkdir(`${folder}/below.yaml`);
    await Deno.writeTextFile(`${folder}/below.yaml/d.yaml`, domain("d"));
    await Deno.writeTextFile(`${folder}/.dot.yaml`, domain("dot"));
  }, {
    domains: ["dot", "a", "b"],
    problems: [
      "warning DIR/below.yaml/d.yaml: this file is in a subfolder and is ignored; move it into DIR",
    ],
  }],
  ["rule files at any depth below, and nothing else there", async (folder) => {
    await Deno.mkdir(`${folder}/team/deep`, { recursive: true });
    await Deno.mkdir(`${folder}/other`);
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
    await Deno.writeTextFile(`${folder}/team/deep/c.yml`, "- not rules");
    await Deno.writeTextFile(`${folder}/team/b.yaml`, domain("b"));
    await Deno.writeTextFile(`${folder}/other/README.md`, "not rules");
  }, {
    domains: ["a"],
    problems: ["team/b.yaml", "team/deep/c.yml"].map((name) =>
      `warning DIR/${name}: this file is in a subfolder and is ignored; move it into DIR`
    ),
  }],
  ["files with a domain that are none by name", async (folder) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
    await Deno.writeTextFile(`${folder}/b.json`, '{ "domain": "b", "descriptors": [] }');
    await Deno.writeTextFile(`${folder}/c`, domain("c"));
    await Deno.writeTextFile(`${folder}/D.YAML`, `# of a team\n---\n${domain("d")}`);
    await Deno.writeTextFile(`${folder}/.e`, domain("e"));
    await Deno.symlink("c", `${folder}/f.conf`);
    await Deno.mkdir(`${folder}/team`);
    await Deno.writeTextFile(`${folder}/team/g`, domain("g"));
  }, {
    domains: ["a"],
    problems: [
      ...[".e", "D.YAML", "b.json", "c", "f.conf"].map((name) => `warning DIR/${name}: ${ANOTHER_NAME}`),
      "warning DIR/team/g: this file is in a subfolder and is ignored; move it into DIR",
    ],
  }],
  ["files without a domain that are none by name", async (folder) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
    await Deno.writeTextFile(`${folder}/README.md`, "# Rules\n\n```yaml\ndomain: a\n```\n");
    await Deno.writeTextFile(`${folder}/notes`, "the domain: of a team\nand: more\n");
    await Deno.writeTextFile(`${folder}/list.json`, '[{ "domain": "b" }]');
    await Deno.writeTextFile(`${folder}/nested.json`, '{ "a": { "domain": "b" } }');
    await Deno.writeFile(
      `${folder}/.a.yaml.swp`,
      new Uint8Array([0xff, ...new TextEncoder().encode(domain("a"))]),
    );
    await padded(`${folder}/large`, MEBIBYTE + 1);
    await Deno.mkdir(`${folder}/folder`);
    await Deno.symlink("nothing", `${folder}/link`);
  }, { domains: ["a"], problems: [] }],
  ["the lock of an Emacs buffer", async (folder) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
    await Deno.symlink("me@host.1:2", `${folder}/.#a.yaml`);
    await Deno.writeTextFile(`${folder}/.#b`, domain("b"));
    await Deno.mkdir(`${folder}/team`);
    await Deno.symlink("me@host.1:2", `${folder}/team/.#a.yaml`);
  }, { domains: ["a"], problems: [] }],
  ["a volume of Kubernetes, where what is shown lies in a folder below", async (folder) => {
    await Deno.mkdir(`${folder}/..2026_11_22`);
    await Deno.writeTextFile(`${folder}/..2026_11_22/a.yaml`, domain("a"));
    await Deno.symlink("..2026_11_22", `${folder}/..data`);
    await Deno.symlink("..data/a.yaml", `${folder}/a.yaml`);
  }, { domains: ["a"], problems: [] }],
  ["a link into a folder below: what it leads to is read", async (folder) => {
    await Deno.mkdir(`${folder}/v1`);
    await Deno.writeTextFile(`${folder}/v1/a.yaml`, domain("a"));
    await Deno.writeTextFile(`${folder}/v1/b.yaml`, domain("b"));
    await Deno.symlink("v1/a.yaml", `${folder}/a.yaml`);
  }, {
    domains: ["a"],
    problems: [
      "warning DIR/v1/b.yaml: this file is in a subfolder and is ignored; move it into DIR",
    ],
  }],
  ["many files below", async (folder) => {
    await Deno.mkdir(`${folder}/below`);
    await Deno.writeTextFile(`${folder}/a.yaml`, domain("a"));
    for (const name of BELOW) await Deno.writeTextFile(`${folder}/below/${name}`, "");
  }, {
    domains: ["a"],
    problems: [
      ...BELOW.slice(0, 20).map((name) =>
        `warning DIR/below/${name}: this file is in a subfolder and is ignored; move it into DIR`
      ),
      "warning DIR: further rule files in folders below are not read; move them up",
    ],
  }],
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
    problems: ["error DIR: Cannot read the folder of rule files: it is not a folder"],
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
  ["a link to nothing whose name has the mark of names that are not UTF-8", async (folder) => {
    await Deno.symlink("nothing", `${folder}/\uFFFD.yaml`);
  }, {
    domains: [],
    problems: [
      "error DIR/\uFFFD.yaml: Cannot read the file: it does not exist; correct the symbolic link, or remove it",
    ],
  }],
  ["one too large, the others are read", async (folder) => {
    await padded(`${folder}/a.yaml`, 16 * MEBIBYTE + 1);
    await Deno.writeTextFile(`${folder}/b.yaml`, domain("b"));
  }, {
    domains: ["b"],
    problems: [
      "error DIR/a.yaml: Cannot read the file: it is larger than 16777216 bytes; make several of it",
    ],
  }],
  ["too large together, reading stops", async (folder) => {
    await padded(`${folder}/a.yaml`, 16 * MEBIBYTE);
    await padded(`${folder}/b.yaml`, 16 * MEBIBYTE);
    await Deno.writeTextFile(`${folder}/c.yaml`, domain("c"));
    await Deno.writeTextFile(`${folder}/d.yaml`, domain("d"));
  }, {
    domains: ["padded", "padded"],
    problems: [
      "error DIR/c.yaml: Cannot read the file: with it the rule files have more than 33554432 bytes; use fewer rules",
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
      "error DIR/b.yaml:1:1: expected a mapping with domain and descriptors, got a list",
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
    await Deno.mkdir(`${folder}/below`);
    await Deno.writeTextFile(`${folder}/below/.dot.yaml`, "- not rules");
  };
  assertEquals(await found(fill, { ignoreDotFiles: true }), { domains: ["a"], problems: [] });
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

Deno.test("rule files: parts are bounded for each file and for all together", async () => {
  const fill = async (folder: string) => {
    await Deno.writeTextFile(`${folder}/a.yaml`, `${domain("a")}#`);
    await Deno.writeTextFile(`${folder}/b.yaml`, `${domain("b")}${"#\n".repeat(20)}`);
    await Deno.writeTextFile(`${folder}/c.yaml`, domain("c"));
  };
  const limits = (fileParts: number, allParts: number) => ({ ...ruleFileLimits(), fileParts, allParts });
  const refused = (file: string, text: string) => [`error DIR/${file}: ${text}; ${ADVICE[file]}`];
  assertEquals(await found(fill, { limits: limits(1_000, 2_000) }), {
    domains: ["a", "b", "c"],
    problems: [],
  });
  assertEquals(await found(fill, { limits: limits(30, 2_000) }), {
    domains: ["a", "c"],
    problems: refused("b.yaml:1:1", "the file has more than 30 words, marks and line ends"),
  });
  assertEquals(await found(fill, { limits: limits(1_000, 85) }), {
    domains: ["a", "b"],
    problems: refused(
      "c.yaml",
      "Cannot read the file: with it the rule files have more than 85 words, marks and line ends",
    ),
  });
});

const ADVICE: Readonly<Record<string, string>> = {
  "b.yaml:1:1": "make several of it",
  "c.yaml": "use fewer rules",
};

Deno.test("rule files: where memory is small, less is read", () => {
  const limits = { fileBytes: 16 * MEBIBYTE, allBytes: 32 * MEBIBYTE };
  assertEquals(ruleFileLimits(8e9), { ...limits, fileParts: 8_000_000, allParts: 16_000_000 });
  assertEquals(ruleFileLimits(550e6), { ...limits, fileParts: 1_000_000, allParts: 2_000_000 });
});

Deno.test("rule files: files whose bytes are the same are not parsed again", async () => {
  const folder = await Deno.makeTempDir();
  let known: string | undefined;
  /** Whether a look found something new, the domains of it, and the files that changed. */
  const look = async () => {
    const { load } = await loadRuleFiles(folder, { ...OPTIONS, known: () => known });
    known = load.digest;
    const changed = load.changed?.map((path) => path.slice(folder.length + 1));
    return load.isUnchanged ?? [load.sources?.map((source) => source.domain), changed];
  };
  try {
    for (const name of ["a", "b"]) await Deno.writeTextFile(`${folder}/${name}.yaml`, domain(name));
    assertEquals(await look(), [["a", "b"], ["a.yaml", "b.yaml"]]);
    await Deno.utime(`${folder}/a.yaml`, 1_000, 1_000);
    assertEquals(await look(), true);
    await Deno.writeTextFile(`${folder}/b.yaml`, domain("c"));
    assertEquals(await look(), [["a", "c"], ["b.yaml"]]);
    // The same bytes under another name have other positions.
    await Deno.rename(`${folder}/a.yaml`, `${folder}/d.yaml`);
    assertEquals(await look(), [["c", "a"], ["d.yaml", "a.yaml"]]);
    await Deno.mkdir(`${folder}/below`);
    await Deno.writeTextFile(`${folder}/below/e.yaml`, domain("e"));
    assertEquals(await look(), [["c", "a"], []]);
    assertEquals(await look(), true);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
