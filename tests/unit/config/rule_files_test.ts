import { assertEquals } from "#assert";
import { ruleFileLimits } from "../../../src/config/rule_file_reader.ts";
import { loadRuleFiles, type RuleFilesOptions } from "../../../src/config/rule_files.ts";
import { problemText } from "../../../src/base/problem.ts";

const OPTIONS = { ignoreDotFiles: false, whenMissing: "make it" };

/** The text of a rule file with this domain and nothing else. */
function domain(name: string): string {
  return `domain: ${name}\ndescriptors: []\n`;
}

/** The text in UTF-16 with its mark, as some editors save it. */
function utf16(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Uint16Array.from(`\ufeff${text}`, (unit) => unit.charCodeAt(0)).buffer);
}

const MEBIBYTE = 1024 * 1024;

/** A rule file of this size that is a comment for the most part. */
const padded = (bytes: number) => `${domain("padded")}#`.padEnd(bytes, "x");

/** The content of a folder, by name: a text or bytes, a link `{to}`, or a folder below. */
interface Tree {
  readonly [name: string]: string | Uint8Array<ArrayBuffer> | { readonly to: string } | { readonly in: Tree };
}

async function fill(folder: string, tree: Tree): Promise<void> {
  for (const [name, entry] of Object.entries(tree)) {
    const path = `${folder}/${name}`;
    if (typeof entry === "string") await Deno.writeTextFile(path, entry);
    else if (entry instanceof Uint8Array) await Deno.writeFile(path, entry);
    else if ("to" in entry) await Deno.symlink(String(entry.to), path);
    else {
      await Deno.mkdir(path);
      await fill(path, entry.in as Tree);
    }
  }
}

interface Found {
  readonly domains: readonly string[] | undefined;
  readonly problems: readonly string[];
}

/** The load of a new folder with this content, or of another entry in its place; the folder stands as `DIR` in it. */
async function found(
  tree: Tree | ((folder: string) => Promise<void>),
  options: Partial<RuleFilesOptions> = {},
): Promise<Found> {
  const folder = await Deno.makeTempDir();
  try {
    await (typeof tree === "function" ? tree(folder) : fill(folder, tree));
    const load = await loadRuleFiles(folder, { ...OPTIONS, ...options });
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

const [A, B] = [domain("a"), domain("b")];
const MANY = Array.from({ length: 30 }, (_, index) => `${index + 10}.yaml`);
const LOCK = { to: "me@host.1:2" };
const below = (name: string) =>
  `warning DIR/${name}: this file is in a subfolder and is ignored; move it into DIR`;
const named = (name: string) =>
  `warning DIR/${name}: this file has a domain but is ignored: its name does not end with .yaml or .yml; rename it`;
const unread = (name: string, state: string) => `error DIR/${name}Cannot read the ${state}`;

const CASES: readonly (readonly [
  name: string,
  tree: Tree | ((folder: string) => Promise<void>),
  domains: readonly string[] | undefined,
  ...problems: readonly string[],
])[] = [
  [
    "files by name, both endings, nothing else",
    {
      "b.yaml": B,
      "a.yml": A,
      "README.md": "not rules",
      "c.yaml~": "not rules",
      "below.yaml": { in: { "d.yaml": domain("d") } },
      ".dot.yaml": domain("dot"),
    },
    ["dot", "a", "b"],
    below("below.yaml/d.yaml"),
  ],
  [
    "rule files at any depth below, and nothing else there",
    {
      "a.yaml": A,
      team: { in: { deep: { in: { "c.yml": "- not rules" } }, "b.yaml": B } },
      other: { in: { "README.md": "not rules" } },
    },
    ["a"],
    below("team/b.yaml"),
    below("team/deep/c.yml"),
  ],
  [
    "files with a domain that are none by name",
    {
      "a.yaml": A,
      "b.json": '{ "domain": "b", "descriptors": [] }',
      c: domain("c"),
      ".e": domain("e"),
      "D.YAML": `# of a team\n---\n${domain("d")}`,
      "f.conf": { to: "c" },
      "g.txt": utf16(domain("g")),
      team: { in: { g: domain("g") } },
    },
    ["a"],
    ...[".e", "D.YAML", "b.json", "c", "f.conf", "g.txt"].map(named),
    below("team/g"),
  ],
  [
    "files without a domain that are none by name",
    {
      "a.yaml": A,
      "README.md": "# Rules\n\n```yaml\ndomain: a\n```\n",
      notes: "the domain: of a team\nand: more\n",
      "list.json": '[{ "domain": "b" }]',
      "nested.json": '{ "a": { "domain": "b" } }',
      ".a.yaml.swp": new Uint8Array([0xff, ...new TextEncoder().encode(A)]),
      large: padded(MEBIBYTE + 1),
      folder: { in: {} },
      link: { to: "nothing" },
    },
    ["a"],
  ],
  ["the lock of an Emacs buffer", {
    "a.yaml": A,
    ".#a.yaml": LOCK,
    ".#b": B,
    team: { in: { ".#a.yaml": LOCK } },
  }, ["a"]],
  ["a volume of Kubernetes, where what is shown lies in a folder below", {
    "..2026_11_22": { in: { "a.yaml": A } },
    "..data": { to: "..2026_11_22" },
    "a.yaml": { to: "..data/a.yaml" },
  }, ["a"]],
  [
    "a link into a folder below: what it leads to is read",
    { v1: { in: { "a.yaml": A, "b.yaml": B } }, "a.yaml": { to: "v1/a.yaml" } },
    ["a"],
    below("v1/b.yaml"),
  ],
  [
    "many files below",
    { "a.yaml": A, below: { in: Object.fromEntries(MANY.map((name) => [name, ""])) } },
    ["a"],
    ...MANY.slice(0, 20).map((name) => below(`below/${name}`)),
    "warning DIR: further rule files in folders below are not read; move them up",
  ],
  ["symbolic links to files, none to folders", {
    v1: { in: { a: A } },
    "a.yaml": { to: "v1/a" },
    "b.yaml": { to: "v1" },
  }, ["a"]],
  [
    "empty folder",
    {},
    [],
    "warning DIR: there are no rule files here, so nothing is limited; put files *.yaml or *.yml into this folder",
  ],
  [
    "folder missing",
    (folder) => Deno.remove(folder),
    undefined,
    "error DIR: Cannot read the folder of rule files: it does not exist; make it",
  ],
  [
    "folder is a file",
    async (folder) => {
      await Deno.remove(folder);
      await Deno.writeTextFile(folder, "");
    },
    undefined,
    "error DIR: Cannot read the folder of rule files: it is not a folder",
  ],
  ...["a", "\uFFFD"].map((name) =>
    [
      `link to nothing, ${JSON.stringify(name)}`,
      { [`${name}.yaml`]: { to: "nothing" }, "b.yaml": B },
      ["b"],
      unread(`${name}.yaml: `, "file: it does not exist; correct the symbolic link, or remove it"),
    ] as const
  ),
  [
    "not UTF-8",
    { "a.yaml": new Uint8Array([0x64, 0xff]) },
    [],
    unread("a.yaml: ", "file: it is not UTF-8; save it as UTF-8"),
  ],
  [
    "one too large, the others are read",
    { "a.yaml": padded(16 * MEBIBYTE + 1), "b.yaml": B },
    ["b"],
    unread("a.yaml: ", "file: it is larger than 16777216 bytes; make several of it"),
  ],
  [
    "too large together, reading stops",
    {
      "a.yaml": padded(16 * MEBIBYTE),
      "b.yaml": padded(16 * MEBIBYTE),
      "c.yaml": domain("c"),
      "d.yaml": domain("d"),
    },
    ["padded", "padded"],
    unread("c.yaml: ", "file: with it the rule files have more than 33554432 bytes; use fewer rules"),
  ],
  [
    "problems of all files",
    { "a.yaml": "domain: a\n", "b.yaml": "- b\n" },
    ["a"],
    "warning DIR/a.yaml:1:1: descriptors: there are no descriptors, so nothing in this domain is limited; " +
    "write 'descriptors: []' if that is meant",
    "error DIR/b.yaml:1:1: expected a mapping with domain and descriptors, got a list",
  ],
];

for (const [name, tree, domains, ...problems] of CASES) {
  Deno.test(`rule files: ${name}`, async () => assertEquals(await found(tree), { domains, problems }));
}

Deno.test("rule files: dot files are left out when asked", async () => {
  const tree = { ".dot.yaml": "- not rules", "a.yaml": A, below: { in: { ".dot.yaml": "- not rules" } } };
  assertEquals(await found(tree, { ignoreDotFiles: true }), { domains: ["a"], problems: [] });
});

Deno.test("rule files: parts are bounded for each file and for all together", async () => {
  const tree = { "a.yaml": `${A}#`, "b.yaml": `${B}${"#\n".repeat(20)}`, "c.yaml": domain("c") };
  const bounded = (fileParts: number, allParts: number) =>
    found(tree, { limits: { ...ruleFileLimits(), fileParts, allParts } });
  const words = "words, marks and line ends";
  assertEquals(await bounded(1_000, 2_000), { domains: ["a", "b", "c"], problems: [] });
  assertEquals(await bounded(30, 2_000), {
    domains: ["a", "c"],
    problems: [`error DIR/b.yaml:1:1: the file has more than 30 ${words}; make several of it`],
  });
  assertEquals(await bounded(1_000, 85), {
    domains: ["a", "b"],
    problems: [
      unread("c.yaml: ", `file: with it the rule files have more than 85 ${words}; use fewer rules`),
    ],
  });
});

Deno.test("rule files: where memory is small, less is read", () => {
  const limits = { fileBytes: 16 * MEBIBYTE, allBytes: 32 * MEBIBYTE };
  assertEquals(ruleFileLimits(8e9), { ...limits, fileParts: 8_000_000, allParts: 16_000_000 });
  assertEquals(ruleFileLimits(550e6), { ...limits, fileParts: 1_000_000, allParts: 2_000_000 });
});

Deno.test("rule files: files whose bytes are the same are not parsed again", async () => {
  const folder = await Deno.makeTempDir();
  let known: string | undefined;
  /** The domains of a load and the files that changed, or true if nothing did. */
  const look = async () => {
    const load = await loadRuleFiles(folder, { ...OPTIONS, known: () => known });
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
