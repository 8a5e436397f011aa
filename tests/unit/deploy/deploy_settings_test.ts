import { assertEquals } from "#assert";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { suppliedVariable } from "../../../src/settings/secret_files.ts";
import { familyPattern, settingEntries } from "../../../src/settings/table.ts";
import { manifestObjects } from "../../harness/deploy_tools.ts";
import {
  deployText,
  deployTree,
  imageEnvironment,
  manifestSecret,
  randomToken,
  type Tree,
  unitEnvironment,
  unitLines,
  withSecretFiles,
} from "../../harness/deploy_files.ts";

const DRAIN_MS = 10_000;
/** Words in capitals of the files that are settings of others. */
const OF_OTHERS = ["DENO_DIR"];
const SETTING_WORD = /(?<![$\w@%.{-])[A-Z]{2,}(?:_[A-Z]+)+(?![\w.])/g;
const KUBERNETES = [
  ...["base/kustomization.yaml", "base/settings.env", "base/weir.yaml"],
  ...["redis/kustomization.yaml", "redis/settings.env", "redis/redis.yaml"],
  ...["webhooks/kustomization.yaml", "webhooks/settings.env", "webhooks/network_policy.yaml"],
].map((name) => `kubernetes/${name}`);
const FILES = [
  ...["Dockerfile", "compose.yaml", "weir.service", "weir@.service", "weir-sandbox.conf", "weir.sh"],
  ...KUBERNETES,
  ...["values.yaml", "templates/_checks.tpl", "templates/_names.tpl"].map((name) => `helm/${name}`),
  ...["cluster", "memcached", "memory", "redis", "tls", "webhooks"].map((name) =>
    `helm/examples/${name}.yaml`
  ),
];
/** Words in capitals with an underscore that are no variables. */
const NO_VARIABLES = ["STRICT_DNS", "AF_INET", "AF_UNIX", "GRPC_XDS_SOTW", "NODE_NAME"];

/** The environment of Weir by one way to run it, its secrets by name, and the whole time that it has to end. */
interface Way {
  readonly env: Record<string, string>;
  /** Each in a file of the folder `place`. */
  readonly secrets?: Record<string, string>;
  readonly place?: string;
  readonly stopMs: number;
}

const WAYS: Readonly<Record<string, () => Promise<Way>>> = {
  "compose.yaml": async () => {
    const { weir } = await deployTree("compose.yaml").then(({ services }) => services ?? {});
    const env = Object.entries(weir?.environment ?? {}).map(([name, value]) =>
      [name, written(value)] as const
    );
    return {
      env: { ...await imageEnvironment(), ...Object.fromEntries(env) },
      stopMs: seconds(weir?.stop_grace_period),
    };
  },
  "kubernetes/redis": () => overlayWay(["base", "redis"]),
  "kubernetes/webhooks": () => overlayWay(["base", "redis", "webhooks"]),
  "weir.service": () => unitWay("weir.service", ""),
  "weir@.service": () => unitWay("weir@.service", "3"),
};

for (const [file, way] of Object.entries(WAYS)) {
  Deno.test(`${file}: Weir can be started with its settings and secrets, and hears no warning`, async () => {
    const { env, secrets = {}, place = "%d" } = await way();
    await using files = await withSecretFiles(secrets, { place, settings: env });
    const { warnings, sources } = readSettings(files.settings);
    assertEquals(warnings.filter((line) => !line.startsWith("ADMIN_TOKEN")), []);
    const supplied = Object.keys(secrets).filter((name) => suppliedVariable(`${name}_FILE`) === name);
    assertEquals([...sources.keys()].sort(), supplied.sort());
    assertEquals(Object.keys(env).filter((name) => !isKnown(name)), []);
    // A key that memcached cannot carry would fail the call, and clients choose the values in it.
    assertEquals(env["MC_KEY_DIGEST"], "true");
  });

  Deno.test(`${file}: there is time for SHUTDOWN_DELAY and for what then runs`, async () => {
    const { env, secrets = {}, place = "%d", stopMs } = await way();
    await using files = await withSecretFiles(secrets, { place, settings: env });
    assertEquals(stopMs >= readSettings(files.settings).settings.SHUTDOWN_DELAY + DRAIN_MS + 1_000, true);
  });
}

for (const file of FILES) {
  Deno.test(`${file} names no variable that Weir does not have, in its comments neither`, async () => {
    const words = (await deployText(file)).match(SETTING_WORD) ?? [];
    assertEquals(words.filter((word) => !isKnown(word) && !NO_VARIABLES.includes(word)), []);
  });
}

Deno.test("kubernetes: the image has the version of the sources, and no registry has its name", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(new URL("../../../deno.json", import.meta.url)));
  const objects = manifestObjects(await deployText("kubernetes/base/weir.yaml"));
  const pod = objects.get("Deployment weir")?.spec?.template?.spec;
  const overlays = await Promise.all(["redis", "webhooks"].map(async (folder) => {
    const { images } = await deployTree(`kubernetes/${folder}/kustomization.yaml`);
    return images as object;
  }));
  const image = { name: "registry.invalid/weir", newName: "registry.invalid/weir", newTag: version };
  assertEquals(overlays, [[image], [image]]);
  assertEquals(String(Object.values(pod?.containers ?? {})[0]?.image), `registry.invalid/weir:${version}`);
  const chart = await deployTree("helm/Chart.yaml");
  assertEquals([chart.version, chart.appVersion].map(String), [version, version]);
});

Deno.test("weir@.service: each instance has a debug port and a port for its own metrics", async () => {
  const ports = await Promise.all(["0", "9"].map(async (instance) => {
    const { env, secrets = {}, place = "%d" } = await unitWay("weir@.service", instance);
    await using files = await withSecretFiles(secrets, { place, settings: env });
    const { settings } = readSettings(files.settings);
    return [settings.DEBUG_PORT, settings.PULL_METRICS_ADDR, settings.GRPC_PORT, settings.BACKEND_TYPE];
  }));
  const [first, last] = ports;
  assertEquals(first, [6070, { host: "127.0.0.1", port: 9090 }, 8081, "kv"]);
  assertEquals(last, [6079, { host: "127.0.0.1", port: 9099 }, 8081, "kv"]);
});

/** An overlay with those below it, and the Secret that its first lines create. */
async function overlayWay(folders: readonly string[]): Promise<Way> {
  const objects = manifestObjects(await deployText("kubernetes/base/weir.yaml"));
  const pod = objects.get("Deployment weir")?.spec?.template?.spec;
  const texts = await Promise.all(folders.map((folder) => deployText(`kubernetes/${folder}/settings.env`)));
  const set = texts.flatMap((text) => text.split("\n")).filter((line) =>
    line !== "" && !line.startsWith("#")
  );
  return {
    env: { ...await imageEnvironment(), ...Object.fromEntries(set.map(assignment)) },
    secrets: await manifestSecret(folders.at(-1)),
    place: "/etc/weir/secrets",
    stopMs: seconds(pod?.terminationGracePeriodSeconds),
  };
}

/** A unit with its credentials, which systemd puts into the folder `%d`. */
async function unitWay(file: string, instance: string): Promise<Way> {
  const stop = /^TimeoutStopSec=(.*)$/m.exec(await deployText(file))?.[1];
  const names = (await unitLines(file)).flatMap(({ name, value }) =>
    name === "LoadCredential" ? [value.split(":")[0] ?? ""] : []
  );
  return {
    env: await unitEnvironment(file, instance),
    secrets: Object.fromEntries(names.map((name) => [name, randomToken()])),
    place: "%d",
    stopMs: seconds(stop),
  };
}

function assignment(line: string): [string, string] {
  const equals = line.indexOf("=");
  return [line.slice(0, equals), line.slice(equals + 1)];
}

/** A value of the compose file where its caller has set nothing. */
function written(value: Tree): string {
  return String(value).replace(/\$\{\w+:-([^}]*)\}/g, "$1");
}

function seconds(value: unknown): number {
  return 1_000 * Number(String(value).replace(/s$/, ""));
}

function isKnown(name: string): boolean {
  return OF_OTHERS.includes(name) || suppliedVariable(name) !== undefined ||
    settingEntries().some(([setting]) => setting === name || familyPattern(setting)?.test(name) === true);
}
