import { assertEquals } from "@std/assert";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { familyPattern, settingEntries } from "../../../src/settings/table.ts";
import {
  deployText,
  deployTree,
  imageEnvironment,
  manifestObjects,
  manifestSecret,
  type Tree,
  unitEnvironment,
} from "../../harness/deploy_files.ts";

const DRAIN_MS = 10_000;
/** Words in capitals of the files that are settings of others. */
const OF_OTHERS = ["DENO_DIR"];
const SETTING_WORD = /(?<![$\w@%.{-])[A-Z]{2,}(?:_[A-Z]+)+(?![\w.])/g;
const FILES = ["Dockerfile", "compose.yaml", "kubernetes.yaml", "weir.service", "weir@.service", "weir.sh"];
/** What stands in capitals with an underscore and is no variable at all. */
const NO_VARIABLES = ["STRICT_DNS", "AF_INET", "AF_UNIX"];

/** The environment of Weir by each way to run it, and the whole time that it has to end. */
const WAYS: Readonly<Record<string, () => Promise<{ env: Record<string, string>; stopMs: number }>>> = {
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
  "kubernetes.yaml": async () => {
    const objects = await manifestObjects();
    const pod = objects.get("Deployment weir")?.spec?.template?.spec;
    const list = Object.values(Object.values(pod?.containers ?? {})[0]?.env ?? {});
    const env = list.map(({ name, value }) => [String(name), String(value)] as const);
    return {
      env: {
        ...await imageEnvironment(),
        ...Object.fromEntries(env),
        ...await manifestSecret(),
      },
      stopMs: seconds(pod?.terminationGracePeriodSeconds),
    };
  },
  "weir.service": () => unitWay("weir.service", ""),
  "weir@.service": () => unitWay("weir@.service", "3"),
};

for (const [file, way] of Object.entries(WAYS)) {
  Deno.test(`${file}: Weir can be started with its settings, and hears no warning`, async () => {
    const { env } = await way();
    assertEquals(readSettings(env).warnings.filter((line) => !line.startsWith("ADMIN_TOKEN")), []);
    assertEquals(Object.keys(env).filter((name) => !isKnown(name)), []);
  });

  Deno.test(`${file}: there is time for SHUTDOWN_DELAY and for what then runs`, async () => {
    const { env, stopMs } = await way();
    assertEquals(stopMs >= readSettings(env).settings.SHUTDOWN_DELAY + DRAIN_MS + 1_000, true);
  });
}

for (const file of FILES) {
  Deno.test(`${file} names no variable that Weir does not have, in its comments neither`, async () => {
    const words = (await deployText(file)).match(SETTING_WORD) ?? [];
    assertEquals(words.filter((word) => !isKnown(word) && !NO_VARIABLES.includes(word)), []);
  });
}

Deno.test("kubernetes.yaml: Weir and redis have the same password", async () => {
  const objects = await manifestObjects();
  const pod = objects.get("Deployment weir-redis")?.spec?.template?.spec;
  const { command, env } = Object.values(pod?.containers ?? {})[0] ?? {};
  assertEquals(Object.values(command ?? {}).slice(-2).map(String), ["--requirepass", "$(KV_AUTH)"]);
  const reference = { name: "KV_AUTH", valueFrom: { secretKeyRef: { name: "weir", key: "KV_AUTH" } } };
  assertEquals(env as object, [reference]);
  const container = Object.values(objects.get("Deployment weir")?.spec?.template?.spec?.containers ?? {})[0];
  assertEquals(container?.envFrom as object, [{ secretRef: { name: "weir" } }]);
});

Deno.test("weir@.service: each instance has a debug port and a port for metrics of its own", async () => {
  const ports = await Promise.all(["0", "9"].map(async (instance) => {
    const { settings } = readSettings(await unitEnvironment("weir@.service", instance));
    return [settings.DEBUG_PORT, settings.PULL_METRICS_ADDR, settings.GRPC_PORT, settings.BACKEND_TYPE];
  }));
  const [first, last] = ports;
  assertEquals(first, [6070, { host: "127.0.0.1", port: 9090 }, 8081, "kv"]);
  assertEquals(last, [6079, { host: "127.0.0.1", port: 9099 }, 8081, "kv"]);
});

async function unitWay(
  file: string,
  instance: string,
): Promise<{ env: Record<string, string>; stopMs: number }> {
  const stop = /^TimeoutStopSec=(.*)$/m.exec(await deployText(file))?.[1];
  return { env: await unitEnvironment(file, instance), stopMs: seconds(stop) };
}

/** A value of the compose file where its caller has set nothing. */
function written(value: Tree): string {
  return String(value).replace(/\$\{\w+:-([^}]*)\}/g, "$1");
}

function seconds(value: unknown): number {
  return 1_000 * Number(String(value).replace(/s$/, ""));
}

function isKnown(name: string): boolean {
  return OF_OTHERS.includes(name) ||
    settingEntries().some(([setting]) => setting === name || familyPattern(setting)?.test(name) === true);
}
