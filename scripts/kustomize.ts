/**
 * Renders the kustomize base and overlays from the Helm chart, which is their source. With `--check`, names the files that
 * are stale and returns 1. `kustomization.yaml` and the policies of the webhooks are written by hand.
 */
import { type GeneratedPage, generatePages } from "./docs/generated_page.ts";
import { requireTool } from "../tests/harness/tools.ts";

const ROOT = new URL("../", import.meta.url);
const CHART = new URL("config/deploy/helm/", ROOT).pathname;
const FOLDER = "config/deploy/kubernetes";
const HEAD = "# Generated from config/deploy/helm by scripts/kustomize.ts. Do not edit.\n";
/** The top-level domain `invalid` is reserved, so this name resolves in no registry. */
const IMAGE = "registry.invalid/weir";
/** Lines for Helm alone: kustomize restarts instances by the hash in the name of their settings. */
const OF_HELM =
  /^ *(?:app\.kubernetes\.io\/managed-by: .*|helm\.sh\/chart: .*|checksum\/settings: .*|# Changed settings restart .*|# Source: .*)\n/gm;

/** An object of a rendered chart, as text. */
interface ChartObject {
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

/** Every file of the kustomize folders that is rendered from the chart. */
export async function kustomizeFiles(): Promise<readonly GeneratedPage[]> {
  const [redis, webhooks] = await Promise.all([renderChart("redis"), renderChart("webhooks")]);
  const settings = settingsOf(redis);
  const cache = settings.filter((line) => line.startsWith("KV_URL="));
  const ofRedis = ({ name }: ChartObject) => name.endsWith("-redis");
  const objects = redis.filter((object) => !["weir-settings", "weir-rules"].includes(object.name));
  return [
    yamlFile("base/weir.yaml", objects.filter((object) => !ofRedis(object))),
    envFile("base/settings.env", settings.filter((line) => !cache.includes(line))),
    ...dataFiles("base/rules", objectNamed(redis, "weir-rules")),
    yamlFile("redis/redis.yaml", objects.filter(ofRedis)),
    envFile("redis/settings.env", cache),
    envFile("webhooks/settings.env", settingsOf(webhooks).filter((line) => !settings.includes(line))),
    ...dataFiles("webhooks/workflows", objectNamed(webhooks, "weir-workflows")),
  ];
}

/** Renders the chart with the values of one of its examples. */
async function renderChart(example: string): Promise<ChartObject[]> {
  const values = ["--values", `${CHART}examples/${example}.yaml`, "--set", `image.repository=${IMAGE}`];
  const command = new Deno.Command(requireTool("helm"), {
    args: ["template", "weir", CHART, "--kube-version", "1.30", ...values],
    signal: AbortSignal.timeout(60_000),
  });
  const { success, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(decoder.decode(stderr));
  return decoder.decode(stdout).split(/^---\n/m).filter((text) => text !== "").map(chartObject);
}

function chartObject(rendered: string): ChartObject {
  const text = rendered.replaceAll(OF_HELM, "");
  const [, kind = ""] = /^kind: (\S+)$/m.exec(text) ?? [];
  const [, name = ""] = /^ {2}name: (\S+)$/m.exec(text) ?? [];
  return { kind, name, text: `${text.trim()}\n` };
}

function objectNamed(objects: readonly ChartObject[], name: string): ChartObject {
  const found = objects.find((object) => object.kind === "ConfigMap" && object.name === name);
  if (found === undefined) throw new Error(`Cannot find ConfigMap ${name} in the rendered chart`);
  return found;
}

/** The settings as lines `NAME=value`. */
function settingsOf(objects: readonly ChartObject[]): string[] {
  const lines = objectNamed(objects, "weir-settings").text.matchAll(/^ {2}([A-Z_]+): "?(.*?)"?$/gm);
  return Array.from(lines, ([, name, value]) => `${name}=${value}`);
}

function envFile(name: string, lines: readonly string[]): GeneratedPage {
  return { path: `${FOLDER}/${name}`, render: () => `${HEAD}${lines.join("\n")}\n` };
}

function yamlFile(name: string, objects: readonly ChartObject[]): GeneratedPage {
  return { path: `${FOLDER}/${name}`, render: () => HEAD + objects.map(({ text }) => text).join("---\n") };
}

/** The files that a ConfigMap contains. */
function dataFiles(folder: string, { text }: ChartObject): GeneratedPage[] {
  const data = text.slice(text.indexOf("\ndata:\n") + 1);
  const files = data.matchAll(/^ {2}(\S+): \|\n((?: {4}.*\n|\n)+)/gm);
  return Array.from(files, ([, name, content = ""]) => {
    return { path: `${FOLDER}/${folder}/${name}`, render: () => HEAD + content.replaceAll(/^ {4}/gm, "") };
  });
}

if (import.meta.main) {
  const isCheck = Deno.args.includes("--check");
  const changed = await generatePages(await kustomizeFiles(), { root: ROOT, isCheck });
  for (const path of changed) {
    console.error(isCheck ? `${path} is stale: run scripts/kustomize.ts` : `${path} written`);
  }
  Deno.exit(isCheck && changed.length > 0 ? 1 : 0);
}
