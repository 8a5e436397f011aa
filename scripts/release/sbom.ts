import { CompileError } from "../compile/failure.ts";

/** The npm packages of `deno.lock`, as far as they are read. */
export interface Lock {
  readonly version: string;
  readonly specifiers: Readonly<Record<string, string>>;
  readonly npm: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly integrity: string;
  readonly dependencies?: readonly string[];
  readonly optionalDependencies?: readonly string[];
}

/** Options of a sbom. */
interface SbomOptions {
  readonly version: string;
  readonly deno: string;
  /** When the sources were committed. */
  readonly time: Date;
  readonly lock: Lock;
  /** The licenses of the packages in the programs, by their names in the lock; the others are for tests only. */
  readonly licenses: ReadonlyMap<string, string | undefined>;
}

interface Component {
  readonly type: "library" | "platform" | "application";
  readonly "bom-ref": string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: "required" | "excluded";
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly { readonly expression: string }[];
}

const LOCK_VERSION = "5";

/**
 * The bill of materials of a release, CycloneDX 1.6: Deno, every package of the lock with its hash, and who depends on
 * whom. Packages that only tests use have the scope "excluded". The same sources give the same text.
 */
export function sbomOf({ version, deno, time, lock, licenses }: SbomOptions): string {
  if (lock.version !== LOCK_VERSION) {
    throw new CompileError(
      `Cannot describe deno.lock of version "${lock.version}": expected version ${LOCK_VERSION}`,
    );
  }
  const ids = Object.keys(lock.npm).sort();
  const runtime: Component = {
    type: "platform",
    "bom-ref": `pkg:github/denoland/deno@v${deno}`,
    name: "deno",
    version: deno,
    purl: `pkg:github/denoland/deno@v${deno}`,
    scope: "required",
    licenses: [{ expression: "MIT" }],
  };
  const program: Component = {
    type: "application",
    "bom-ref": `pkg:generic/weir@${version}`,
    name: "weir",
    version,
    purl: `pkg:generic/weir@${version}`,
    licenses: [{ expression: "Apache-2.0" }],
  };
  const roots = Object.entries(lock.specifiers).map(([specifier, found]) =>
    refOf(`${nameOf(specifier.slice("npm:".length))}@${found}`)
  );
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { timestamp: time.toISOString(), component: program },
    components: [runtime, ...unique(ids.map((id) => componentOf(id, lock, licenses)))],
    dependencies: [
      { ref: program["bom-ref"], dependsOn: [...new Set([runtime["bom-ref"], ...roots])].sort() },
      { ref: runtime["bom-ref"], dependsOn: [] },
      ...dependenciesOf(ids, lock),
    ],
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function componentOf(id: string, lock: Lock, licenses: SbomOptions["licenses"]): Component {
  const name = nameOf(id);
  const slash = name.indexOf("/");
  const [algorithm = "", hash = ""] = /^(sha\d+)-(.+)$/.exec(lock.npm[id]?.integrity ?? "")?.slice(1) ?? [];
  const license = licenses.get(id);
  return {
    type: "library",
    "bom-ref": refOf(id),
    ...(slash < 0 ? {} : { group: name.slice(0, slash) }),
    name: name.slice(slash + 1),
    version: versionOf(id),
    purl: refOf(id),
    scope: licenses.has(id) ? "required" : "excluded",
    hashes: [{
      alg: algorithm.replace("sha", "SHA-"),
      content: Uint8Array.fromBase64(hash).toHex(),
    }],
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
  };
}

/** One component for a package that the lock has several times, for other peers; required if one of them is. */
function unique(components: readonly Component[]): Component[] {
  const found = new Map<string, Component>();
  for (const component of components) {
    const ref = component["bom-ref"];
    if (found.get(ref)?.scope !== "required") found.set(ref, component);
  }
  return [...found.values()];
}

function dependenciesOf(ids: readonly string[], lock: Lock): object[] {
  const found = new Map<string, Set<string>>();
  for (const id of ids) {
    const { dependencies = [], optionalDependencies = [] } = lock.npm[id] ?? { integrity: "" };
    const refs = found.get(refOf(id)) ?? new Set();
    for (const named of [...dependencies, ...optionalDependencies]) refs.add(refOf(resolved(named, ids)));
    found.set(refOf(id), refs);
  }
  return [...found].map(([ref, refs]) => ({ ref, dependsOn: [...refs].sort() }));
}

/** The name in the lock of a dependency, which has a version only where there are several; `alias@npm:` is left out. */
function resolved(dependency: string, ids: readonly string[]): string {
  const named = dependency.replace(/^.+@npm:/, "");
  const found = ids.find((id) => id === named || nameOf(id) === named || id.startsWith(`${named}_`));
  if (found !== undefined) return found;
  throw new CompileError(`Cannot describe deno.lock: it lacks the package "${dependency}"`);
}

/** The name of `@scope/name@version_peer@version`. */
function nameOf(id: string): string {
  return id.slice(0, id.indexOf("@", 1));
}

function versionOf(id: string): string {
  return id.slice(id.indexOf("@", 1) + 1).split("_")[0] ?? "";
}

function refOf(id: string): string {
  return `pkg:npm/${nameOf(id).replace("@", "%40")}@${versionOf(id)}`;
}
