import { assertEquals } from "#assert";
import { HABIT_RULES } from "./harness/habit_rules.ts";
import { importCircles } from "./harness/import_circles.ts";
import { functionsOf, importsOf, scanSource, type Source } from "./harness/source_scan.ts";
import { TEST_RULES } from "./harness/test_rules.ts";
import { type Exceptions, shrunk, unexpected } from "./harness/tidy_exceptions.ts";
import { TIDY_RULES } from "./harness/tidy_rules.ts";
import { strayFiles } from "./harness/tracked_files.ts";
import { unusedExports } from "./harness/unused_exports.ts";

const ROOT = new URL("../", import.meta.url);
const CORE = "src/ratelimit/sample.ts";

const RULES = { ...TIDY_RULES, ...HABIT_RULES, ...TEST_RULES };
/** The rules that need all files to find something in one. */
const WHOLE_RULES = {
  "no files import each other in a circle": importCircles,
  "an export is imported by another file": unusedExports,
};
const EXCEPTIONS_FILE = new URL("harness/tidy_exceptions.json", import.meta.url);
const BED = "tests/integration/base/sample_test.ts";

let allSources: Promise<Source[]> | undefined;
let allFindings: Promise<ReadonlyMap<string, readonly string[]>> | undefined;
const EXCEPTIONS = await readExceptions();

for (const name of [...Object.keys(RULES), ...Object.keys(WHOLE_RULES)]) {
  Deno.test(`tidy: ${name}`, async () => {
    assertEquals(unexpected((await findings()).get(name) ?? [], EXCEPTIONS[name]), []);
  });
}

Deno.test("tidy: every exception is for a rule", () => {
  const known = [...Object.keys(RULES), ...Object.keys(WHOLE_RULES)];
  assertEquals(Object.keys(EXCEPTIONS).filter((name) => !known.includes(name)), []);
});

Deno.test("tidy: the repository has only files of known kinds and places", async () => {
  const paths: string[] = [];
  await collect("", paths);
  assertEquals(strayFiles(paths, await Deno.readTextFile(new URL(".gitignore", ROOT))), []);
});

Deno.test("tidy: a circle is found, through types as well", () => {
  const files = {
    "src/a.ts": 'import "./b.ts"; import "./d.ts";',
    "src/b.ts": 'export * from "./deep/c.ts"; import "./d.ts";',
    "src/deep/c.ts": 'import type { A } from "../a.ts";',
    "src/d.ts": 'import "./e.ts";',
    "src/e.ts": 'import "./e.ts";',
    "src/f.ts": 'import "./a.ts"; import "./missing.ts";',
  };
  const circles = importCircles(Object.entries(files).map(([path, text]) => scanSource(path, text)));
  assertEquals(circles, ["src/a.ts", "src/b.ts", "src/deep/c.ts", "src/e.ts"]);
});

Deno.test("tidy: every file is read to its end", async () => {
  const count = (source: Source, bracket: string) => source.code.split(bracket).length;
  const lost = (await sources()).filter((source) => {
    return ["{}", "()", "[]"].some(([open = "", close = ""]) => count(source, open) !== count(source, close));
  });
  assertEquals(lost.map(({ path }) => path), []);
});

// One bad sample for each rule, and the finding that it must give: a rule that finds nothing guards nothing.
const BAD: readonly { rule: string; path?: string; text: string; findings: string[] }[] = [
  {
    rule: "a folder of src imports only what it may know",
    text:
      `import type { A } from "../wire/rls.ts";\nimport { B } from "../base/clock.ts";\nexport * from "../../main.ts";`,
    findings: [`${CORE} imports src/wire/rls.ts`, `${CORE} imports main.ts`],
  },
  {
    rule: "a third-party package is imported only where its job is",
    text:
      `const grpc = await import("@grpc/grpc-js");\nimport { join } from "node:path";\nimport "left-pad";`,
    findings: [`${CORE} imports @grpc/grpc-js`, `${CORE} imports left-pad`],
  },
  {
    rule: "a third-party package is imported by its name, without a path into it",
    text:
      'import "yaml/dist/index.js"; import "@a/b/c"; import "@a/b"; import "pg"; import "node:fs/promises";',
    findings: [`${CORE} imports yaml/dist/index.js`, `${CORE} imports @a/b/c`],
  },
  {
    rule: "no member of a foreign object begins with an underscore",
    text:
      `client._readyCheck(); socket?._parent; this._write(); a["_b"];\nif ("_handle" in c) d = "_e"; f = ["_"];`,
    findings: [
      `${CORE}:1: ._readyCheck`,
      `${CORE}:1: ?._parent`,
      `${CORE}:1: _b`,
      `${CORE}:2: _handle`,
    ],
  },
  {
    rule: "only tests and the start script import main.ts",
    text: 'import { serve } from "../../main.ts";',
    findings: [`${CORE} imports main.ts`],
  },
  {
    rule: "the pure parts use no clock, no chance and no I/O",
    text: `const a = Date.now();\n// Math.random\nconst b = Deno.args; fetch("x"); prefetch("y");`,
    findings: [`${CORE}:1: Date.now`, `${CORE}:3: fetch(`, `${CORE}:3: Deno.`],
  },
  {
    rule: "only one file touches the console and the standard streams",
    text: "console.error(1);\nDeno.stderr.write(a);",
    findings: [`${CORE}:1: console`, `${CORE}:2: Deno.stderr`],
  },
  {
    rule: "a file has at most 400 lines",
    text: "\n".repeat(400) + "const a = 1;\n",
    findings: [`${CORE} has 401 lines`],
  },
  {
    rule: "a function has at most 70 lines",
    text: `function a(): void {\n}\nconst b = () => {${"\n".repeat(70)}};`,
    findings: [`${CORE}:3 has 71 lines`],
  },
  {
    rule: "a file has a name in snake_case",
    path: "src/base/camelCase.ts",
    text: "",
    findings: ["src/base/camelCase.ts"],
  },
  {
    rule: "no file and no export has a name without meaning",
    path: "src/base/time_utils.ts",
    text: "export class TimerManager {}\nexport async function fullyDone() {}",
    findings: [
      "src/base/time_utils.ts has the name time_utils",
      "src/base/time_utils.ts has the name TimerManager",
    ],
  },
  {
    rule: "nothing is exported as default",
    text: "\nexport default 1;",
    findings: [`${CORE}:2: export default`],
  },
  {
    rule: "nothing is an enum",
    text: "export const enum A { B }",
    findings: [`${CORE}:1: export const enum A`],
  },
  {
    rule: "nothing is left to be done",
    text: `// ${"TO" + "DO"}: more\nconst a = "${"FIX" + "ME"}";`,
    findings: [`${CORE}:1: ${"TO" + "DO"}`],
  },
  {
    rule: "texts use the words of the field",
    text:
      "// Is told of what\n// stands\n// before it, octet by octet.\nconst octets = `${beside} would be right`;\nlet size = 'application/octet-stream';",
    findings: [
      `${CORE}:1: Is told`,
      `${CORE}:2: stands\n// before`,
      `${CORE}:3: octet`,
      `${CORE}:3: octet`,
      `${CORE}:4: would be right`,
      `${CORE}:4: octets`,
    ],
  },
  {
    rule: "an export has a sentence of documentation",
    text:
      "/** Said. */\nexport const a = 1;\n// Whispered.\nexport const b = 2;\n/** */\nexport class C {}\nexport { d };",
    findings: [`${CORE}:4`, `${CORE}:6`],
  },
  {
    rule: "an object literal is not spread: the object has a name",
    text: "const a = { ...{ b, c }, ...(d ? {} : { e }), ...f };\n// ...{ g }\nh({ ...{} });",
    findings: [`${CORE}:1: a spread literal`],
  },
  {
    rule: "an interface of options states its fields, without Omit and Pick",
    text: `interface A extends B, Pick<C, "d"> {}
export type EOptions =
  & Omit<F, "g">;
type H = Pick<F, "g">;
interface I { j(k: Pick<C, "d">): void }`,
    findings: [`${CORE}:1: Omit or Pick`, `${CORE}:2: Omit or Pick`],
  },
  {
    rule: "a doc comment does not begin with What, How, Whether or Where",
    text: "/** Whether it is. */\n/**\n * What it is.\n */\n/** Tells what it is. */\n// How it is.",
    findings: [`${CORE}:1: Whether`, `${CORE}:2: What`],
  },
  {
    rule: "a class has at most six fields that change",
    text: `class A<T> extends B<C> {
  static d = 1;
  readonly e = new Map<string, { f: 1 }>();
  #g = 1;
  h?: string;
  private i: { j: 1;
    k: 2 } | undefined;
  l!: number; // m: 1;
  protected override n = () => {
    const o = 1;
  };
  #p;
  q: 1 | 2 = 1;
  get r() { return 1; }
  s(t = 1, u: string): void {}
}
class V { a = 1; b = 1; }`,
    findings: [`${CORE}:1: A has 7`],
  },
  {
    rule: "no test waits more than 100 ms for time to pass",
    path: BED,
    text: `import { setTimeout as sleep } from "node:timers/promises";
const PAUSE_MS = 2 * UNIT_MS;
const UNIT_MS: number = 75;
const TIMES = { short: 5, long: 3_000 };
await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
await sleep(TIMES.long); await sleep(TIMES.short);
receiver.react = () => new Promise((resolve) => {
  setTimeout(() => resolve(200), 60 + 60);
});
await until("it", () => it(), { intervalMs: 1_000 });
await Promise.race([sleep(10_000), it]);`,
    findings: [`${BED}:5: 150 ms`, `${BED}:6: 3000 ms`, `${BED}:8: 120 ms`, `${BED}:10: 1000 ms`],
  },
  {
    rule: "an assertion after a wait reads only the records that the wait names",
    path: BED,
    text: `await until("it", () => receiver.received.length === 2);
assertEquals([receiver.received, weir.lines], [[], []]);
await until("it", () => isOver);
const page = await weir.page("/stats");
assertMatch(page, /a/);
await until("it", () => isOver);
assertEquals([isOver, { log: 1 }], []);
await new Promise((resolve) => setTimeout(resolve, 5));
assertEquals(a, b);`,
    findings: [`${BED}:1: lines`, `${BED}:3: page(`, `${BED}:8: a pause`],
  },
  {
    rule: "scripts import only the harness from tests, and only their own tests import scripts",
    path: "scripts/sample.ts",
    text: 'import "../tests/harness/until.ts"; import "../tests/unit/base/bed.ts";',
    findings: ["scripts/sample.ts imports tests/unit/base/bed.ts"],
  },
  {
    rule: "scripts import only the harness from tests, and only their own tests import scripts",
    path: "tests/harness/sample.ts",
    text: 'import "../../scripts/test.ts";',
    findings: ["tests/harness/sample.ts imports scripts/test.ts"],
  },
  {
    rule: "only the harness starts servers",
    path: BED,
    text: `new ChildProcess(${"requireTool"}("redis-server"), {});\nrequireTool("openssl");`,
    findings: [`${BED}:1: ${"requireTool"}("redis-server")`],
  },
  {
    rule: "only tests/deploy needs programs for other tools' files",
    path: BED,
    text: 'Deno.test({ ...needs(["curl", "zsh"], "a fish"), fn });\nconst fish = "fish";',
    findings: [`${BED}:1: zsh`],
  },
];

for (const { rule, path, text, findings } of BAD) {
  Deno.test(`tidy: a bad sample shows that ${rule}`, () => {
    assertEquals(RULES[rule]?.(scanSource(path ?? CORE, text)), findings);
  });
}

Deno.test("tidy: every rule has a bad sample", () => {
  assertEquals([...new Set(BAD.map(({ rule }) => rule))], Object.keys(RULES));
});

Deno.test("tidy: a test may wait for an event, with a limit, and for a moment", () => {
  const text = `const LIMIT_MS = 60_000;
const timer = setTimeout(() => child.kill(), 60_000);
this.#timer = many ? setTimeout(give, LIMIT_MS) : undefined;
await new Promise((resolve) => setTimeout(resolve, 100));
await new Promise((resolve) => setTimeout(resolve, delayMs));
await until("it", () => it(), { deadlineMs: LIMIT_MS });
const text = "await sleep(1_000)";`;
  assertEquals(Object.values(TEST_RULES).flatMap((rule) => rule(scanSource(BED, text))), []);
});

Deno.test("tidy: the scan tells code from strings, templates, patterns and comments", () => {
  const text = 'a("x{\\"", \'y{\', `z{${b({ c: `}` })}{`, /[/{]\\/{/g, 1 / 2 / 3); // {\n/* { */ d;';
  const { code, comments } = scanSource(CORE, text);
  const expected = "a(\"    \", '  ', `   {b({ c: ` ` })} `, /       /g, 1 / 2 / 3);     \n        d;";
  assertEquals([code, comments.trim()], [expected, "// {\n/* { */"]);
});

Deno.test("tidy: the scan finds every kind of import", () => {
  const text = `import a, { type b } from "1"; import type { c } from '2'; export * from "3"; import "4";
export {\n  d,\n} from "5"; await import("6"); type E = import("7").F; Array.from("no"); const from = "no";`;
  assertEquals(importsOf(scanSource(CORE, text)), ["1", "2", "3", "4", "5", "6", "7"]);
});

Deno.test("tidy: the scan finds every kind of function", () => {
  const text = `function a(b: () => C): Promise<{ d: 1 }> {
}
const e = (f: G): f is H => {

};
class I { get j(): { k: 1 } | undefined { return }
  async #l<M>({ n } = {}): Promise<void> {


  }
}
if (o(p)) { q(); } else if (r) { s(() => t, function () { }); }
const u = v ? w(x) : { y: 1 };
interface Z { a(b: C): { d: 1 }; }`;
  const spans = functionsOf(scanSource(CORE, text)).map(({ line, lines }) => [line, lines]);
  assertEquals(spans, [[1, 2], [3, 3], [6, 1], [7, 4], [12, 1]]);
});

/** Every source file of the project; read once, because every rule asks for all of them. */
function sources(): Promise<Source[]> {
  allSources ??= readSources();
  return allSources;
}

/** `deno test -A tests/tidy_test.ts -- --shrink` removes the exceptions that are not needed. */
async function readExceptions(): Promise<Exceptions> {
  const exceptions: Exceptions = JSON.parse(await Deno.readTextFile(EXCEPTIONS_FILE));
  if (!Deno.args.includes("--shrink")) return exceptions;
  const needed = shrunk(exceptions, await findings());
  await Deno.writeTextFile(EXCEPTIONS_FILE, `${JSON.stringify(needed, undefined, 2)}\n`);
  return needed;
}

async function readSources(): Promise<Source[]> {
  const paths: string[] = [];
  for (const folder of ["src/", "scripts/", "tests/"]) await collect(folder, paths);
  const files = ["main.ts", ...paths.filter((path) => path.endsWith(".ts"))];
  return await Promise.all(files.map(async (path) => {
    return scanSource(path, await Deno.readTextFile(new URL(path, ROOT)));
  }));
}

/** The findings of every rule in all files, without exceptions; computed once. */
function findings(): Promise<ReadonlyMap<string, readonly string[]>> {
  allFindings ??= findAll();
  return allFindings;
}

async function findAll(): Promise<ReadonlyMap<string, readonly string[]>> {
  const all = await sources();
  return new Map([
    ...Object.entries(RULES).map(([name, rule]) => [name, all.flatMap(rule)] as const),
    ...Object.entries(WHOLE_RULES).map(([name, rule]) => [name, rule(all)] as const),
  ]);
}

async function collect(folder: string, paths: string[]): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    const path = `${folder}${name}`;
    if (name === ".git") continue;
    if (isDirectory) await collect(`${path}/`, paths);
    else paths.push(path);
  }
}
