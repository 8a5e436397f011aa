/** The library is fit to be published: documented exports, a clean dry run, no import from outside. */
import { assertEquals } from "#assert";
import { join } from "node:path";
import { ChildProcess } from "../../harness/child_process.ts";
import { importsOf, scanSource, type Source } from "../../harness/source_scan.ts";

const FOLDER = new URL("../../../src/rest/", import.meta.url).pathname;
const DOORS = ["mod.ts", "testing.ts"];

/** The part of the output of `deno doc --json` that is read here. */
interface Documentation {
  readonly nodes: Readonly<Record<string, DocumentedModule>>;
}

interface DocumentedModule {
  readonly module_doc?: Comment;
  readonly symbols: readonly { readonly name: string; readonly declarations: readonly Declaration[] }[];
}

interface Declaration {
  readonly jsDoc?: Comment;
}

interface Comment {
  readonly doc?: string;
  readonly tags?: readonly { readonly kind: string; readonly doc?: string }[];
}

Deno.test("every export of the library has a sentence and an example", async () => {
  const { nodes } = await documentation(FOLDER);
  const modules = Object.values(nodes);
  assertEquals(modules.map(({ symbols }) => symbols.length > 0), DOORS.map(() => true));
  assertEquals(modules.flatMap(undocumented), []);
});

Deno.test("the documentation of the library passes the linter", async () => {
  const { code, stderr } = await deno(["doc", "--lint", ...DOORS], FOLDER);
  assertEquals([code, stderr], [0, ["Checked 2 files"]]);
});

Deno.test("a dry run of publishing the library is clean and sends its sources and nothing else", async () => {
  const { code, stderr } = await deno(["publish", "--dry-run", "--allow-dirty", "--no-check"], FOLDER);
  const sent = stderr.flatMap((line) => /^\s+file:\/\/\S*\/src\/rest\/(\S+) \(/.exec(line)?.[1] ?? []);
  const complaints = stderr.filter((line) => /warning|error/i.test(line) && !line.includes("rest_error.ts"));
  const sources = (await sourcesOf(FOLDER)).map(({ path }) => path);
  assertEquals([code, complaints, sent.toSorted()], [
    0,
    [],
    [...sources, "README.md", "deno.json"].toSorted(),
  ]);
});

Deno.test("the library imports nothing but its own files", async () => {
  const sources = await sourcesOf(FOLDER);
  const imports = sources.flatMap((source) => importsOf(source).map((from) => `${source.path}: ${from}`));
  assertEquals(imports.length > 10, true);
  assertEquals(imports.filter((line) => !/: \.\/\w+\.ts$/.test(line)), []);
});

async function sourcesOf(folder: string): Promise<Source[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  return await Promise.all(
    names.filter((name) => name.endsWith(".ts")).map(async (name) =>
      scanSource(name, await Deno.readTextFile(join(folder, name)))
    ),
  );
}

/** The documentation that exports of a module, and the module itself, lack. */
function undocumented({ module_doc, symbols }: DocumentedModule): string[] {
  return [
    ...lacks("module", module_doc),
    ...symbols.flatMap(({ name, declarations }) => declarations.flatMap(({ jsDoc }) => lacks(name, jsDoc))),
  ];
}

function lacks(name: string, comment: Comment = {}): string[] {
  const { doc = "", tags = [] } = comment;
  const hasSentence = /[.:]/.test(doc);
  const hasExample = tags.some((tag) => tag.kind === "example" && /```ts\n[^]*```/.test(tag.doc ?? ""));
  return [
    ...hasSentence ? [] : [`${name}: no sentence`],
    ...hasExample ? [] : [`${name}: no example`],
  ];
}

async function documentation(folder: string): Promise<Documentation> {
  const { stdout } = await deno(["doc", "--json", ...DOORS], folder);
  return JSON.parse(stdout.join("\n"));
}

/** Runs the program that runs this test; its colours would hide what it says. */
async function deno(
  args: readonly string[],
  cwd: string,
): Promise<{ code: number; stdout: readonly string[]; stderr: readonly string[] }> {
  const env = { ...Deno.env.toObject(), NO_COLOR: "1" };
  await using child = new ChildProcess(Deno.execPath(), { args, cwd, env });
  const { code } = await child.exited;
  return { code, stdout: child.stdoutLines, stderr: child.stderrLines };
}
