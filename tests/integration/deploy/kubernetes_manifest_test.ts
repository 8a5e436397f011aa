import { assertEquals, assertMatch } from "@std/assert";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import {
  deployPath,
  deployText,
  imageEnvironment,
  manifestObjects,
  manifestSecret,
  type Tree,
} from "../../harness/deploy_files.ts";
import { runDeployTool } from "../../harness/deploy_tools.ts";

/** A release of Kubernetes whose schemas the tool has. */
const RELEASE = "1.30";

Deno.test({
  ...needs(
    ["kubectl-validate"],
    "kubernetes.yaml: every object is one of Kubernetes, to its last field",
  ),
  async fn() {
    const { code, text } = await validate(deployPath("kubernetes.yaml"));
    assertEquals([code, /error/i.test(text), (text.match(/OK/g) ?? []).length > 0], [0, false, true]);
  },
});

Deno.test({
  ...needs(["kubectl-validate"], "a field that Kubernetes does not have is found in a manifest"),
  async fn() {
    const path = await Deno.makeTempFile({ prefix: "weir_manifest_", suffix: ".yaml" });
    try {
      const text = await deployText("kubernetes.yaml");
      await Deno.writeTextFile(path, text.replace("readOnlyRootFilesystem", "readOnlyRoot"));
      const answer = await validate(path);
      assertEquals(answer.code === 0, false);
      assertMatch(answer.text, /readOnlyRoot/);
    } finally {
      await Deno.remove(path);
    }
  },
});

Deno.test("kubernetes.yaml: what names another object names one that is there", async () => {
  const objects = await manifestObjects();
  const kinds = [
    "ConfigMap weir-rules",
    "ConfigMap weir-redis",
    "Deployment weir",
    "Service weir",
  ];
  const more = ["PodDisruptionBudget weir", "Deployment weir-redis", "Service weir-redis"];
  assertEquals([...objects.keys()], [...kinds, ...more]);
  for (const name of ["weir", "weir-redis"]) {
    const { labels } = objects.get(`Deployment ${name}`)?.spec?.template?.metadata ?? {};
    assertEquals(objects.get(`Deployment ${name}`)?.spec?.selector?.matchLabels, labels);
    assertEquals(objects.get(`Service ${name}`)?.spec?.selector, labels);
  }
  const { labels } = objects.get("Deployment weir")?.spec?.template?.metadata ?? {};
  assertEquals(objects.get("PodDisruptionBudget weir")?.spec?.selector?.matchLabels, labels);
  const volumes = Object.values(podOf(objects, "weir").volumes ?? {});
  assertEquals(volumes.map((volume) => String(volume.configMap?.name ?? "")), ["weir-rules", ""]);
  assertEquals(settingOf(podOf(objects, "weir"), "KV_URL"), "weir-redis:6379");
});

Deno.test("kubernetes.yaml: no container is root, writes to its root or has a capability", async () => {
  const objects = await manifestObjects();
  for (const name of ["weir", "weir-redis"]) {
    const pod = podOf(objects, name);
    const container = containerOf(pod);
    const { runAsNonRoot, seccompProfile } = pod.securityContext ?? {};
    assertEquals({ runAsNonRoot, seccompProfile, ...container.securityContext }, {
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    } as unknown);
  }
});

Deno.test({
  ...needs(
    ["redis-server"],
    "kubernetes.yaml: Weir runs with its redis and its rules, and its probes say what they should",
  ),
  async fn() {
    const objects = await manifestObjects();
    const pod = podOf(objects, "weir");
    const lines = String(objects.get("ConfigMap weir-redis")?.data?.["redis.conf"]).trim().split("\n");
    const { KV_AUTH = "" } = await manifestSecret();
    const [, , ...flags] = Object.values(containerOf(podOf(objects, "weir-redis")).command ?? {}).map(String);
    const args = [
      ...lines.flatMap((line) => `--${line}`.replaceAll('"', "").split(" ")),
      ...flags.map((flag) => flag.replace("$(KV_AUTH)", KV_AUTH)),
    ];
    await using redis = await startRedis({ args });
    const rules = Object.entries(objects.get("ConfigMap weir-rules")?.data ?? {});
    await using weir = await startWeir({
      rules: Object.fromEntries(rules.map(([name, text]) => [name, String(text)])),
      env: { ...await podEnvironment(objects), ...UNHURRIED, KV_URL: `127.0.0.1:${redis.port}` },
    });
    const { startupProbe, livenessProbe, readinessProbe } = containerOf(pod);
    const probes = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet);
    assertEquals(probes.map((probe) => String(probe?.port)), ["debug", "debug", "debug"]);
    const statuses = () => Promise.all(probes.map((probe) => statusOf(`${weir.debugAddress}${probe?.path}`)));
    assertEquals(await statuses(), [200, 200, 200]);
    const asked = { domain: "shop", descriptors: [{ entries: [{ key: "account", value: "bob" }] }] };
    const answer = await fetch(`http://${weir.httpAddress}/json`, {
      method: "POST",
      body: JSON.stringify(asked),
    });
    assertEquals((await answer.json()).statuses[0].limitRemaining, 4);
    weir.signal("SIGTERM");
    await until("the service to say that it stops", async () => (await statuses())[2] === 503);
    assertEquals(await statuses(), [200, 200, 503]);
  },
});

async function validate(path: string): Promise<{ code: number; text: string }> {
  return await runDeployTool("kubectl-validate", [path, "--version", RELEASE]);
}

function podOf(objects: ReadonlyMap<string, Tree>, name: string): Tree {
  return objects.get(`Deployment ${name}`)?.spec?.template?.spec ?? {};
}

function containerOf(pod: Tree): Tree {
  return Object.values(pod.containers ?? {})[0] ?? {};
}

function settingOf(pod: Tree, wanted: string): string {
  const variables = Object.values(containerOf(pod).env ?? {});
  return String(variables.find(({ name }) => String(name) === wanted)?.value);
}

/** On a busy machine the time-out is no failure, and the probes are asked in time. */
const UNHURRIED = { KV_TIMEOUT: "30s", SHUTDOWN_DELAY: "60s" };

/** The environment of Weir, but for the ports and the folder that a test has for itself. */
async function podEnvironment(objects: ReadonlyMap<string, Tree>): Promise<Record<string, string>> {
  const own = ["RUNTIME_ROOT", "RUNTIME_APPDIRECTORY", "USE_PULL_METRICS", "DENO_DIR"];
  const image = Object.entries(await imageEnvironment()).filter(([name]) => !own.includes(name));
  const variables = Object.values(containerOf(podOf(objects, "weir")).env ?? {});
  return {
    ...Object.fromEntries(image),
    ...Object.fromEntries(variables.map(({ name, value }) => [String(name), String(value)])),
    ...await manifestSecret(),
    // Standard error says in text where it listens.
    LOG_FORMAT: "text",
  };
}

async function statusOf(address: string): Promise<number> {
  const response = await fetch(`http://${address}`);
  await response.body?.cancel();
  return response.status;
}
