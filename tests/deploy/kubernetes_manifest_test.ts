import { assertEquals, assertRejects } from "#assert";
import { join } from "node:path";
import { ChildProcess } from "../harness/child_process.ts";
import { freePort } from "../harness/free_port.ts";
import { redisCommand } from "../harness/redis_command.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { startWeir } from "../harness/weir_process.ts";
import { imageEnvironment, manifestSecret, type Tree, withSecretFiles } from "../harness/deploy_files.ts";
import { manifestObjects, renderedManifest, validateManifest } from "../harness/deploy_tools.ts";

const FOLDERS = ["base", "redis", "webhooks"];

for (const folder of FOLDERS) {
  Deno.test({
    ...needs(
      ["kustomize", "kubectl-validate", "prometheus-operator-crds"],
      `kubernetes/${folder}: kustomize builds it, and every object is one of Kubernetes, to its last field`,
    ),
    async fn() {
      await validateManifest(await renderedManifest(folder));
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
    [nameOf("weir-rules"), "weir-workflows", "weir", "undefined"],
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
    const [, , mount] = Object.values(containerOf(podOf(objects, "weir")).volumeMounts ?? {});
    assertEquals(mount as object, { name: "secrets", mountPath: "/etc/weir/secrets", readOnly: true });
    const volume = Object.values(podOf(objects, "weir").volumes ?? {})[2];
    // Readable for the group of the process, in decimal as JSON has it.
    assertEquals(volume?.secret as object, { secretName: "weir", defaultMode: 0o440 });

    const redis = podOf(objects, "weir-redis");
    const { command, env } = containerOf(redis);
    assertEquals([command, env] as unknown, [["sh", "/etc/redis/start.sh"], undefined]);
    const mounted = Object.values(redis.volumes ?? {}).map(({ secret }) => secret as unknown);
    const items = [{ key: "KV_AUTH", path: "KV_AUTH" }];
    assertEquals(mounted, [undefined, { secretName: "weir", defaultMode: 0o440, items }]);
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

Deno.test({
  ...needs(
    ["redis-server", "kustomize"],
    "kubernetes/redis: redis requires its password, and no argument has it",
  ),
  async fn() {
    const objects = manifestObjects(await renderedManifest("redis"));
    const data = objects.get("ConfigMap weir-redis")?.data ?? {};
    const KV_AUTH = `"quotes", 'others' # and $(id)`;
    await using redis = await startManifestRedis(data, { KV_AUTH });
    const { port, child } = redis;
    const refusals = [undefined, "wrong", ""].map(async (password) => {
      const { message } = await assertRejects(() => redisCommand(["PING"], { port, password }));
      return /NOAUTH|WRONGPASS/.exec(message)?.[0] ?? message;
    });
    assertEquals(await Promise.all(refusals), ["NOAUTH", "WRONGPASS", "WRONGPASS"]);
    const words = await Deno.readTextFile(`/proc/${child.pid}/cmdline`);
    assertEquals([/^redis-server/.test(words), words.includes("quotes")], [true, false]);
  },
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
    const secrets = await manifestSecret();
    await using redis = await startManifestRedis(objects.get("ConfigMap weir-redis")?.data ?? {}, secrets);
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

/** The redis of the manifest, on a free port of the loopback address. */
async function startManifestRedis(
  data: Tree,
  { KV_AUTH = "" }: Readonly<Record<string, string>>,
): Promise<{ readonly port: number; readonly child: ChildProcess } & AsyncDisposable> {
  await using files = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir_manifest_redis_" });
  files.defer(() => Deno.remove(folder, { recursive: true }));
  const port = freePort();
  const own = `port ${port}\nbind 127.0.0.1\ndir ${folder}\n`;
  await Deno.writeTextFile(join(folder, "redis.conf"), `${data["redis.conf"]}${own}`);
  await Deno.writeTextFile(join(folder, "KV_AUTH"), KV_AUTH);
  const script = String(data["start.sh"]).replace("/etc/redis-secret/", `${folder}/`)
    .replace("/etc/redis/", `${folder}/`);
  await Deno.writeTextFile(join(folder, "start.sh"), script);
  const child = files.use(new ChildProcess("sh", { args: [join(folder, "start.sh")] }));
  await until("redis to accept the password", async () => {
    return String(await redisCommand(["PING"], { port, password: KV_AUTH })) === "PONG" || !child.running;
  });
  const owned = files.move();
  return { port, child, [Symbol.asyncDispose]: () => owned.disposeAsync() };
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
