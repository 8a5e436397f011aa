import { assertEquals } from "#assert";
import { startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { startWeir } from "../harness/weir_process.ts";
import { imageEnvironment, manifestSecret, type Tree, withSecretFiles } from "../harness/deploy_files.ts";
import { manifestObjects, renderedManifest, runDeployTool } from "../harness/deploy_tools.ts";

/** Releases of Kubernetes whose schemas the tool has: the oldest that the manifests are for, and its newest. */
const RELEASES = ["1.27", "1.30"];
const FOLDERS = ["base", "redis"];

for (const folder of FOLDERS) {
  Deno.test({
    ...needs(
      ["kustomize", "kubectl-validate"],
      `kubernetes/${folder}: kustomize builds it, and every object is one of Kubernetes, to its last field`,
    ),
    async fn() {
      const manifest = await renderedManifest(folder);
      for (const release of RELEASES) {
        const { code, text } = await validate(manifest, release);
        assertEquals([code, /error/i.test(text), text.includes("OK")], [0, false, true], release + text);
      }
    },
  });
}

testOverlay("what names another object names one that is there", (objects) => {
  assertEquals([...objects.keys()].sort(), [
    ...["ConfigMap weir-redis", "ConfigMap weir-rules", "ConfigMap weir-settings"],
    ...["Deployment weir", "Deployment weir-redis", "HorizontalPodAutoscaler weir"],
    ...["NetworkPolicy weir", "NetworkPolicy weir-redis", "NetworkPolicy weir-to-redis"],
    ...["PodDisruptionBudget weir", "Service weir", "Service weir-redis"],
  ]);
  for (const name of ["weir", "weir-redis"]) {
    const { labels } = objects.get(`Deployment ${name}`)?.spec?.template?.metadata ?? {};
    assertEquals(objects.get(`Deployment ${name}`)?.spec?.selector?.matchLabels, labels);
    assertEquals(objects.get(`Service ${name}`)?.spec?.selector, labels);
    assertEquals(objects.get(`NetworkPolicy ${name}`)?.spec?.podSelector?.matchLabels, labels);
  }
  const { labels } = objects.get("Deployment weir")?.spec?.template?.metadata ?? {};
  assertEquals(objects.get("PodDisruptionBudget weir")?.spec?.selector?.matchLabels, labels);
  const target = objects.get("HorizontalPodAutoscaler weir")?.spec?.scaleTargetRef as object;
  assertEquals(target, { apiVersion: "apps/v1", kind: "Deployment", name: "weir" });
  assertEquals(objects.get("Deployment weir")?.spec?.replicas, undefined);

  const pod = podOf(objects, "weir");
  const nameOf = (kind: string) => String(objects.get(`ConfigMap ${kind}`)?.metadata?.name);
  assertEquals(
    Object.values(pod.volumes ?? {}).map(({ configMap, secret }) =>
      String(configMap?.name ?? secret?.secretName)
    ),
    [nameOf("weir-rules"), "weir", "undefined"],
  );
  assertEquals(nameOf("weir-rules"), "weir-rules");
  assertEquals(containerOf(pod).envFrom as object, [{ configMapRef: { name: nameOf("weir-settings") } }]);
  assertEquals(settingsOf(objects).KV_URL, "weir-redis:6379");
});

testOverlay(
  "only secrets by reference, and Weir and redis have the same password",
  async (objects, manifest) => {
    assertEquals(manifest.includes("kind: Secret"), false);
    const secrets = Object.keys(await manifestSecret());
    const files = secrets.map((name) => [`${name}_FILE`, `/etc/weir/secrets/${name}`]);
    const settings = Object.entries(settingsOf(objects)).filter(([name]) => name.endsWith("_FILE"));
    assertEquals(settings.sort(), files.sort());
    const [, mount] = Object.values(containerOf(podOf(objects, "weir")).volumeMounts ?? {});
    assertEquals(mount as object, { name: "secrets", mountPath: "/etc/weir/secrets", readOnly: true });
    const volume = Object.values(podOf(objects, "weir").volumes ?? {})[1];
    // Readable for the group of the process, in decimal as JSON has it.
    assertEquals(volume?.secret as object, { secretName: "weir", defaultMode: 0o440 });

    const { command, env } = containerOf(podOf(objects, "weir-redis"));
    assertEquals(Object.values(command ?? {}).slice(-2).map(String), ["--requirepass", "$(KV_AUTH)"]);
    const reference = { name: "KV_AUTH", valueFrom: { secretKeyRef: { name: "weir", key: "KV_AUTH" } } };
    assertEquals(env as object, [reference]);
  },
);

testOverlay("the policies open the ports of callers, metrics, DNS and redis, and no other", (objects) => {
  const opened = (name: string, way: "ingress" | "egress") =>
    Object.values(objects.get(`NetworkPolicy ${name}`)?.spec?.[way] ?? {}).flatMap(({ ports }) =>
      Object.values(ports ?? {}).map(({ port }) => String(port))
    );
  assertEquals(opened("weir", "ingress"), ["grpc", "http", "metrics"]);
  assertEquals(opened("weir", "egress"), ["53", "53"]);
  assertEquals(opened("weir-to-redis", "egress"), ["redis"]);
  assertEquals(opened("weir-redis", "ingress"), ["redis"]);
  for (const name of ["weir", "weir-redis"]) {
    assertEquals(objects.get(`NetworkPolicy ${name}`)?.spec?.policyTypes as object, ["Ingress", "Egress"]);
  }
  const named = Object.values(containerOf(podOf(objects, "weir")).ports ?? {}).map(({ name }) =>
    String(name)
  );
  assertEquals(named, ["grpc", "http", "debug", "metrics"]);
});

testOverlay("no container is root, writes to its root or has a capability", (objects) => {
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
    ["redis-server", "kustomize"],
    "kubernetes/redis: Weir runs with its redis and its rules, and its probes say what they should",
  ),
  async fn() {
    const objects = manifestObjects(await renderedManifest("redis"));
    const pod = podOf(objects, "weir");
    const lines = String(objects.get("ConfigMap weir-redis")?.data?.["redis.conf"]).trim().split("\n")
      .filter((line) => !line.startsWith("#"));
    const secrets = await manifestSecret();
    const { KV_AUTH = "" } = secrets;
    const [, , ...flags] = Object.values(containerOf(podOf(objects, "weir-redis")).command ?? {}).map(String);
    const args = [
      ...lines.flatMap((line) => `--${line}`.replaceAll('"', "").split(" ")),
      ...flags.map((flag) => flag.replace("$(KV_AUTH)", KV_AUTH)),
    ];
    await using redis = await startRedis({ args });
    const rules = Object.entries(objects.get("ConfigMap weir-rules")?.data ?? {});
    await using files = await withSecretFiles(secrets, {
      place: "/etc/weir/secrets",
      settings: await podEnvironment(objects),
    });
    await using weir = await startWeir({
      rules: Object.fromEntries(rules.map(([name, text]) => [name, String(text)])),
      env: { ...files.settings, ...UNHURRIED, KV_URL: `127.0.0.1:${redis.port}` },
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

/** A test of the objects that kustomize builds with redis. */
function testOverlay(
  name: string,
  check: (objects: ReadonlyMap<string, Tree>, manifest: string) => void | Promise<void>,
): void {
  Deno.test({
    ...needs(["kustomize"], `kubernetes/redis: ${name}`),
    async fn() {
      const manifest = await renderedManifest("redis");
      await check(manifestObjects(manifest), manifest);
    },
  });
}

async function validate(manifest: string, release: string): Promise<{ code: number; text: string }> {
  const path = await Deno.makeTempFile({ prefix: "weir_manifest_", suffix: ".yaml" });
  try {
    await Deno.writeTextFile(path, manifest);
    return await runDeployTool("kubectl-validate", [path, "--version", release]);
  } finally {
    await Deno.remove(path);
  }
}

function podOf(objects: ReadonlyMap<string, Tree>, name: string): Tree {
  return objects.get(`Deployment ${name}`)?.spec?.template?.spec ?? {};
}

function containerOf(pod: Tree): Tree {
  return Object.values(pod.containers ?? {})[0] ?? {};
}

function settingsOf(objects: ReadonlyMap<string, Tree>): Record<string, string> {
  const settings = Object.entries(objects.get("ConfigMap weir-settings")?.data ?? {});
  return Object.fromEntries(settings.map(([name, value]) => [name, String(value)]));
}

/** On a busy machine the time-out is no failure, and the probes are asked in time. */
const UNHURRIED = { KV_TIMEOUT: "30s", SHUTDOWN_DELAY: "60s" };

/** The environment of Weir, but for the ports and the folder that a test has for itself. */
async function podEnvironment(objects: ReadonlyMap<string, Tree>): Promise<Record<string, string>> {
  const own = ["RUNTIME_ROOT", "RUNTIME_APPDIRECTORY", "USE_PULL_METRICS", "DENO_DIR"];
  const image = Object.entries(await imageEnvironment()).filter(([name]) => !own.includes(name));
  return {
    ...Object.fromEntries(image),
    ...settingsOf(objects),
    // Standard error says in text where it listens.
    LOG_FORMAT: "text",
  };
}

async function statusOf(address: string): Promise<number> {
  const response = await fetch(`http://${address}`);
  await response.body?.cancel();
  return response.status;
}
