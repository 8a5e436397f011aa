import { assertEquals } from "#assert";
import { parse } from "yaml";
import { kustomizeFiles } from "../../scripts/kustomize.ts";
import { generatePages } from "../../scripts/docs/generated_page.ts";
import {
  deployPath,
  deployText,
  imageEnvironment,
  randomToken,
  type Tree,
  withSecretFiles,
} from "../harness/deploy_files.ts";
import {
  chartObjects,
  manifestObjects,
  renderChart,
  renderedManifest,
  runDeployTool,
  validateManifest,
} from "../harness/deploy_tools.ts";
import { needs } from "../harness/tools.ts";
import { familyPattern, settingEntries } from "../../src/settings/table.ts";
import { readSettings } from "../../src/settings/read_settings.ts";
import { suppliedVariable } from "../../src/settings/secret_files.ts";

const EXAMPLES = ["memory", "redis", "cluster", "memcached", "webhooks", "tls"];
const TOOLS = ["helm", "kubectl-validate", "prometheus-operator-crds"] as const;
/** Values that render by themselves, for those of a case. */
const IMAGE = "image.repository=registry.example.com/weir";
const WHOLE = [IMAGE, "redis.enabled=true", "secret.settings={DEBUG_TOKEN,KV_AUTH}", "rules.configMap=rules"];

for (const example of EXAMPLES) {
  Deno.test({
    ...needs(
      TOOLS,
      `chart: the example ${example} is free of findings, and all its objects are of Kubernetes`,
    ),
    async fn() {
      const lint = ["lint", "--strict", "helm", "--values", deployPath(`helm/examples/${example}.yaml`)];
      const { code, text } = await runDeployTool("helm", lint);
      assertEquals([code, /\[(?:WARNING|ERROR)\]|Fail:/.exec(text)?.[0]], [0, undefined], text);
      await validateManifest(await renderChart(example));
    },
  });

  Deno.test({
    ...needs(
      ["helm"],
      `chart: the example ${example} has no secret in a ConfigMap, an argument or a variable`,
    ),
    async fn() {
      const objects = await chartObjects(example);
      assertEquals([...objects.keys()].filter((name) => name.startsWith("Secret ")), []);
      const settings = Object.keys(objects.get("ConfigMap weir-settings")?.data ?? {});
      const pods = ["weir", "weir-redis"].map((name) =>
        objects.get(`Deployment ${name}`)?.spec?.template?.spec
      );
      const containers = pods.flatMap((pod) => Object.values(pod?.containers ?? {}));
      const variables = containers.flatMap(({ env }) => Object.values(env ?? {})).map(({ name }) =>
        String(name)
      );
      assertEquals(
        [...settings, ...variables].filter((name) => secrets().some((each) => each.test(name))),
        [],
      );
      const words = containers.flatMap(({ command, args }) => [command, args].map(String));
      assertEquals(words.filter((word) => /KV_AUTH|requirepass/.test(word)), []);
    },
  });
}

/** The settings that can contain a secret, but for addresses, which the schema keeps free of passwords. */
function secrets(): RegExp[] {
  return settingEntries().filter(([name, { secret }]) => secret && !/_URL$|_<OPTION>$/.test(name))
    .map(([name]) => familyPattern(name) ?? new RegExp(`^${name}$`));
}

/** Values that are refused, each with a part of the message. */
const REFUSED: readonly (readonly [name: string, values: readonly string[], message: string])[] = [
  ["no image", ["image.repository="], "image.repository is required: push the image to your registry"],
  ["an image without a registry", ["image.repository=weir"], "at '/image/repository': 'weir' does not match"],
  ["an image of a public registry", ["image.repository=me/weir"], "at '/image/repository'"],
  ["a misspelled setting", ["settings.KV_TIMOUT=1s"], "at '/settings': additional properties 'KV_TIMOUT'"],
  ["a setting that is no string", ["settings.KV_POOL_SIZE=5"], "got number, want string"],
  [
    "a word in place of true",
    ["settings.KV_TLS=yes"],
    "at '/settings/KV_TLS': value must be one of 'true', 'f",
  ],
  [
    "a password among the settings",
    ["settings.KV_AUTH=pass"],
    "value must be '(absent: put it into the Secret, and its name into secret.settings)'",
  ],
  [
    "a password in an address",
    ["settings.KV_PERSECOND_URL=redis://u:p@h:1"],
    "at '/settings/KV_PERSECOND_URL'",
  ],
  ["a token for OTLP", ["settings.OTEL_EXPORTER_OTLP_HEADERS=a=b"], "put it into the Secret"],
  ["a password as a variable", ["extraEnv.ADMIN_TOKEN=pass"], "set it in settings or secret.settings"],
  ["a port", ["settings.GRPC_PORT=1"], "value must be '(absent: the chart sets it)'"],
  [
    "a key that is no secret",
    ["secret.settings={KV_POOL_SIZE}"],
    "at '/secret/settings/0': 'KV_POOL_SIZE' does",
  ],
  ["a delay in fractions", ["settings.SHUTDOWN_DELAY=500ms"], "at '/settings/SHUTDOWN_DELAY'"],
  ["a value without any", ["rules=null"], "at '': missing property 'rules'"],
  ["a field without any", ["image.pullPolicy=null"], "at '/image': missing property 'pullPolicy'"],
  [
    "another label that selects the pods",
    ["podLabels.app\\.kubernetes\\.io/name=a"],
    "absent: the chart sets it",
  ],
  ["an unknown value", ["replicaCount=2"], "additional properties 'replicaCount' not allowed"],
  ["memory with several instances", ["settings.BACKEND_TYPE=memory"], "counts in each instance alone"],
  [
    "fewer instances at most than at least",
    ["autoscaling.maxReplicas=1"],
    "greater than autoscaling.maxReplicas",
  ],
  ["no cache", ["redis.enabled=false"], "BACKEND_TYPE=kv requires settings.KV_URL"],
  ["no node of memcached", ["redis.enabled=false", "settings.BACKEND_TYPE=mc"], "BACKEND_TYPE=mc requires"],
  ["redis without a password", ["secret.settings={DEBUG_TOKEN}"], "redis.enabled requires a password"],
  ["two caches", ["settings.KV_URL=redis:6379"], "redis.enabled sets KV_URL: remove KV_URL"],
  ["no rules", ["rules.configMap="], "rules are required: set rules.files"],
  ["rules twice", ["rules.files.a\\.yaml=domain: a"], "rules.files and rules.configMap are both set"],
  [
    "rules in no YAML file",
    ["rules.files.a\\.txt=domain: a"],
    "at '/rules/files': additional properties 'a.txt'",
  ],
  [
    "a cache behind a policy",
    ["redis.enabled=false", "settings.KV_URL=r:1"],
    "networkPolicy.egress is required",
  ],
  ["workflows without a store", ["workflows.configMap=flows"], "workflows require a store"],
  [
    "a store without a key",
    ["secret.settings={KV_AUTH,WEBHOOK_STORE}"],
    "WEBHOOK_STORE requires an encryption key",
  ],
  ["HTTPS without a certificate", ["tls.http=true"], "tls.http and tls.clientCa require tls.secret"],
  ["alerts without runbooks", ["monitoring.prometheusRule=true"], "requires monitoring.runbookUrl"],
];

for (const [name, values, message] of REFUSED) {
  Deno.test({
    ...needs(["helm"], `chart: ${name} is refused`),
    async fn() {
      const args = [...WHOLE, ...values].flatMap((value) => ["--set", value]);
      const { code, text } = await runDeployTool("helm", [
        "template",
        "weir",
        "helm",
        ...KUBERNETES,
        ...args,
      ]);
      assertEquals([code, text.includes(message)], [1, true], text);
    },
  });
}

const KUBERNETES = ["--kube-version", "1.30"];

for (const example of EXAMPLES) {
  Deno.test({
    ...needs(
      ["helm"],
      `chart: Weir starts with the settings of ${example} without a warning, and files are mounted`,
    ),
    async fn() {
      const objects = await chartObjects(example);
      const settings = Object.entries(objects.get("ConfigMap weir-settings")?.data ?? {})
        .map(([name, value]) => [name, String(value)] as const);
      const pod = objects.get("Deployment weir")?.spec?.template?.spec;
      const [container = {}] = Object.values(pod?.containers ?? {});
      const mounts = Object.values(container.volumeMounts ?? {}).map(({ mountPath }) => String(mountPath));
      const paths = settings.map(([, value]) => value).filter((value) => value.startsWith("/etc/"));
      assertEquals(paths.filter((path) => !mounts.some((mount) => `${path}/`.startsWith(`${mount}/`))), []);
      const secrets = secretValues(settings.map(([name]) => name));
      const place = "/etc/weir/secrets";
      await using files = await withSecretFiles(secrets, { place, settings: Object.fromEntries(settings) });
      const env = { ...await imageEnvironment(), ...files.settings };
      const known = new Set<string>(["DENO_DIR", ...settingEntries().map(([name]) => name)]);
      const unknown = Object.keys(env).filter((name) =>
        !known.has(name) && suppliedVariable(name) === undefined
      );
      const warnings = readSettings(env).warnings.filter((line) => !line.startsWith("DEBUG_TOKEN"));
      assertEquals({ warnings, unknown }, { warnings: [], unknown: [] });
    },
  });
}

/** The keys of the Secret that the settings name, with values of their kind. */
function secretValues(settings: readonly string[]): Record<string, string> {
  const names = settings.filter((name) => name.endsWith("_FILE")).map((name) =>
    name.slice(0, -"_FILE".length)
  );
  const values: Record<string, string> = { WEBHOOK_STORE: "postgres://weir:password@postgres:5432/weir" };
  return Object.fromEntries(names.map((name) => [name, values[name] ?? randomToken()]));
}

Deno.test({
  ...needs(TOOLS, "chart: a release of another name has other objects and labels"),
  async fn() {
    const manifest = await renderChart("redis", ["monitoring.podMonitor=true"], "shop");
    await validateManifest(manifest);
    const objects = manifestObjects(manifest);
    assertEquals([...objects.keys()].filter((name) => !/^\w+ shop-weir(?:-|$)/.test(name)), []);
    const labels = { "app.kubernetes.io/name": "shop-weir" };
    const { spec } = objects.get("Deployment shop-weir") ?? {};
    assertEquals([spec?.selector?.matchLabels, spec?.template?.metadata?.labels] as unknown, [
      labels,
      labels,
    ]);
    const selectors = ["Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor"].map((kind) => {
      const { selector, podSelector } = objects.get(`${kind} shop-weir`)?.spec ?? {};
      return selector?.matchLabels ?? podSelector?.matchLabels ?? selector;
    });
    assertEquals(selectors as unknown, [labels, labels, labels, labels]);
    const settings = objects.get("ConfigMap shop-weir-settings")?.data;
    assertEquals(String(settings?.KV_URL), "shop-weir-redis:6379");
  },
});

Deno.test({
  ...needs(["helm"], "chart: settings, replicas and times follow from the values"),
  async fn() {
    const memory = (await chartObjects("memory")).get("Deployment weir")?.spec;
    const redis = (await chartObjects("redis", ["settings.SHUTDOWN_DELAY=45s"])).get("Deployment weir")?.spec;
    const seen = [memory, redis].map((spec) => [
      spec?.replicas as unknown,
      spec?.template?.spec?.terminationGracePeriodSeconds as unknown,
    ]);
    assertEquals(seen, [[1, 30], [undefined, 65]]);
    const checksums = await Promise.all(
      [[], ["settings.KV_TIMEOUT=1s"], ["podLabels.a=b"]].map(async (values) => {
        const objects = await chartObjects("redis", values);
        return String(
          objects.get("Deployment weir")?.spec?.template?.metadata?.annotations?.["checksum/settings"],
        );
      }),
    );
    assertEquals([checksums[0] === checksums[1], checksums[0] === checksums[2]], [false, true]);
  },
});

Deno.test({
  ...needs(["helm"], "chart: alerts and dashboard are the files, with the address of the runbooks"),
  async fn() {
    const objects = await chartObjects("memcached");
    const alerts = (await deployText("helm/files/prometheus-alerts.yaml"))
      .replaceAll("runbook_url: docs/", "runbook_url: https://git.example.com/weir/blob/v0.3.0/docs/");
    assertEquals(objects.get("PrometheusRule weir")?.spec as unknown, parse(alerts));
    const dashboard = String(objects.get("ConfigMap weir-dashboard")?.data?.["weir.json"]);
    assertEquals(JSON.parse(dashboard), JSON.parse(await deployText("helm/files/grafana-dashboard.json")));
  },
});

Deno.test({
  ...needs(["helm"], "kustomize: its files are those that the chart renders"),
  async fn() {
    const root = new URL("../../", import.meta.url);
    assertEquals(await generatePages(await kustomizeFiles(), { root, isCheck: true }), []);
  },
});

for (const overlay of ["redis", "webhooks"]) {
  Deno.test({
    ...needs(["helm", "kustomize"], `kustomize: the overlay ${overlay} builds the objects of the chart`),
    async fn() {
      const chart = await chartObjects(overlay, ["image.repository=registry.invalid/weir"]);
      const overlaid = manifestObjects(await renderedManifest(overlay));
      // Kustomize adds policies to that of the base.
      const policies = ["NetworkPolicy weir", "NetworkPolicy weir-to-webhooks"];
      const egress = policies.flatMap((name) => Object.values(overlaid.get(name)?.spec?.egress ?? {}));
      assertEquals(Object.values(chart.get("NetworkPolicy weir")?.spec?.egress ?? {}), egress);
      const others = (objects: ReadonlyMap<string, Tree>) => {
        const names = [...objects.keys()].filter((name) => !policies.includes(name)).sort();
        return names.map((name) => [name, comparable(objects.get(name) ?? {})]);
      };
      assertEquals(others(overlaid), others(chart));
    },
  });
}

/** The content of an object, without additions of Helm or of kustomize: labels, hashes, and the heads of files. */
function comparable({ spec, data }: Tree): unknown {
  const text = JSON.stringify({ spec, data })
    .replaceAll(/(?<="configMapRef":\{"name":"weir-settings)-\w+/g, "")
    .replaceAll(/,"checksum\/settings":"\w+"|# Generated from .*? Do not edit\.\\n/g, "");
  return JSON.parse(text);
}
