import { join } from "node:path";
import ts from "typescript";
import { CompileError, runDeno, runToEnd } from "../compile/failure.ts";

/** A module that is released as a package for Node, browsers and bundlers. */
interface NpmPackage {
  readonly name: string;
  readonly description: string;
  /** Its entries by their subpaths: the module, and the name of its file in the package. */
  readonly entries: Readonly<Record<string, readonly [module: string, file: string]>>;
  readonly readme: string | URL;
}

const RECEIVER_README = `# @weir/webhooks

Verifies the signatures of webhooks that Weir delivers, on Node 20 or later, Deno and in browsers. It has no
dependencies.

\`\`\`js
import { verify } from "@weir/webhooks";

// The raw body: a body that was parsed and serialized again differs.
const result = await verify({ body, headers: request.headers, secrets: [secret] });
if (!result.ok) console.log(result.reason);
\`\`\`

docs/webhooks/receiving.md in the sources of Weir describes receivers.
`;

/** The packages of a release, with the version of the release. */
const NPM_PACKAGES: readonly NpmPackage[] = [
  {
    name: "@weir/rest",
    description: "A small HTTP client with timeouts, retries and limits, built on fetch",
    entries: { ".": ["src/rest/mod.ts", "rest"], "./testing": ["src/rest/testing.ts", "testing"] },
    readme: new URL("../../src/rest/README.md", import.meta.url),
  },
  {
    name: "@weir/webhooks",
    description: "Verifies the signatures of webhooks that Weir delivers",
    entries: { ".": ["src/webhooks/receiver.ts", "webhooks"] },
    readme: RECEIVER_README,
  },
];

/** Options of `packNpm`. */
interface PackOptions {
  /** The root of the sources. */
  readonly root: string;
  readonly version: string;
  /** Takes the archives. */
  readonly output: string;
  readonly signal?: AbortSignal;
}

/** Packs each package with `npm pack`: one JavaScript file per entry, with types. Returns the names of the archives. */
export async function packNpm({ root, version, output, signal }: PackOptions): Promise<string[]> {
  const names: string[] = [];
  for (const one of NPM_PACKAGES) {
    const folder = await Deno.makeTempDir({ prefix: "weir_npm_" });
    try {
      await writePackage(one, { root, version, folder });
      const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", output];
      const { code, stdout, stderr } = await runToEnd("npm", args, {
        cwd: folder,
        ...(signal === undefined ? {} : { signal }),
      });
      if (code !== 0) {
        throw new CompileError(`Cannot pack ${one.name}: npm ended with code ${code}\n${stderr}`);
      }
      names.push(JSON.parse(stdout)[0].filename);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }
  return names;
}

interface WriteOptions {
  readonly root: string;
  readonly version: string;
  readonly folder: string;
}

async function writePackage(one: NpmPackage, { root, version, folder }: WriteOptions): Promise<void> {
  const entries = Object.entries(one.entries);
  for (const [, [module, file]] of entries) {
    const args = [
      "bundle",
      "--quiet",
      "--platform",
      "browser",
      "--output",
      join(folder, `${file}.js`),
      module,
    ];
    await runDeno(`bundle ${module}`, args, { cwd: root });
  }
  const modules = entries.map(([, [module]]) => join(root, module));
  for (const [path, text] of declarationsOf(modules, root)) {
    const target = join(folder, "types", path);
    await Deno.mkdir(join(target, ".."), { recursive: true });
    await Deno.writeTextFile(target, text);
  }
  const exported = entries.map(([subpath, [module, file]]) => {
    const types = `./types/${module.replace(/\.ts$/, ".d.ts")}`;
    return [subpath, { types, default: `./${file}.js` }] as const;
  });
  const manifest = {
    name: one.name,
    version,
    description: one.description,
    license: "Apache-2.0",
    type: "module",
    sideEffects: false,
    engines: { node: ">=20" },
    exports: Object.fromEntries(exported),
    files: ["*.js", "types"],
  };
  await Deno.writeTextFile(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  const { readme } = one;
  const text = typeof readme === "string" ? readme : await Deno.readTextFile(readme);
  await Deno.writeTextFile(join(folder, "README.md"), text);
  await Deno.copyFile(join(root, "LICENSE"), join(folder, "LICENSE"));
}

/** The declarations of modules and of all that these lead to, by their paths from the root. */
function declarationsOf(modules: readonly string[], root: string): Map<string, string> {
  const emitted = new Map<string, string>();
  const program = ts.createProgram([...modules], {
    allowImportingTsExtensions: true,
    declaration: true,
    emitDeclarationOnly: true,
    lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts"],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    rootDir: root,
    skipLibCheck: true,
    strict: true,
    target: ts.ScriptTarget.ESNext,
    types: [],
  });
  const { diagnostics } = program.emit(undefined, (path, text) => {
    // Node and bundlers know the modules by the names of their JavaScript.
    const named = text.replaceAll(/(from |import\()"(\.[^"]+)\.ts"/g, '$1"$2.js"');
    emitted.set(path.slice(root.length).replace(/^\//, ""), named);
  });
  const [first] = diagnostics;
  if (first === undefined && emitted.size > 0) return emitted;
  const reason = first === undefined
    ? "nothing was emitted"
    : ts.flattenDiagnosticMessageText(first.messageText, "\n");
  throw new CompileError(`Cannot write the types of ${modules.join(", ")}: ${reason}`);
}
