import { join } from "node:path";
import { parse } from "yaml";

/** A tree of YAML or JSON, as far as a test reads it. */
export interface Tree {
  readonly [name: string]: Tree;
}

/** One line `Name=value` of a unit file. */
export interface UnitLine {
  readonly section: string;
  readonly name: string;
  readonly value: string;
}

const FOLDER = new URL("../../config/deploy/", import.meta.url);

/** The path of a file for operators. */
export function deployPath(name: string): string {
  return new URL(name, FOLDER).pathname;
}

/** The text of a file for operators. */
export async function deployText(name: string): Promise<string> {
  return await Deno.readTextFile(deployPath(name));
}

/** The tree of a YAML file for operators. */
export async function deployTree(name: string): Promise<Tree> {
  return parse(await deployText(name));
}

/** The Secret that the first lines of an overlay for Kubernetes create, with values as they make them. */
export async function manifestSecret(overlay = "redis"): Promise<Record<string, string>> {
  const text = await deployText(`kubernetes/${overlay}/kustomization.yaml`);
  const literals = text.matchAll(/--from-literal=(\w+)="([^"]*)"/g);
  return Object.fromEntries(Array.from(literals, ([, name = "", value = ""]) => [name, secretValue(value)]));
}

function secretValue(literal: string): string {
  if (literal === "$(openssl rand -hex 32)") return randomToken();
  if (literal === "$(openssl rand -base64 32)") return crypto.getRandomValues(new Uint8Array(32)).toBase64();
  return literal.replace("$DB_PASSWORD", randomToken());
}

/** A token as `openssl rand -hex 32` makes it. */
export function randomToken(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}

/** A folder with each secret in a file, and the settings with the paths of these files instead of those of `place`. */
export async function withSecretFiles(
  secrets: Readonly<Record<string, string>>,
  { place, settings }: { readonly place: string; readonly settings: Readonly<Record<string, string>> },
): Promise<{ readonly settings: Record<string, string> } & AsyncDisposable> {
  const folder = await Deno.makeTempDir({ prefix: "weir_secrets_" });
  for (const [name, text] of Object.entries(secrets)) {
    await Deno.writeTextFile(join(folder, name), `${text}\n`);
  }
  const moved = Object.entries(settings).map(([name, value]) => [name, value.replace(place, folder)]);
  return {
    settings: Object.fromEntries(moved),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** The lines of a unit file in their order, without its comments. */
export async function unitLines(name: string): Promise<UnitLine[]> {
  let section = "";
  const lines: UnitLine[] = [];
  for (const line of (await deployText(name)).split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const heading = /^\[(\w+)\]$/.exec(line)?.[1];
    if (heading !== undefined) section = heading;
    const equals = line.indexOf("=");
    if (heading === undefined) {
      lines.push({ section, name: line.slice(0, equals), value: line.slice(equals + 1) });
    }
  }
  return lines;
}

/** The environment that a unit file sets; `%i` is the instance. */
export async function unitEnvironment(name: string, instance = ""): Promise<Record<string, string>> {
  const words = (await unitLines(name))
    .filter((line) => line.name === "Environment")
    .flatMap(({ value }) => value.replaceAll("%i", instance).split(" "));
  return Object.fromEntries(words.map((word) => {
    const equals = word.indexOf("=");
    return [word.slice(0, equals), word.slice(equals + 1)];
  }));
}

/** The instructions of the Dockerfile, each as one line, without comments. */
export async function dockerInstructions(): Promise<string[]> {
  const lines = (await deployText("Dockerfile")).split("\n").filter((line) => !line.startsWith("#"));
  return lines.join("\n").replace(/\\\n\s*/g, "").split("\n").filter((line) => line !== "");
}

/** The environment that the image has. */
export async function imageEnvironment(): Promise<Record<string, string>> {
  const last = (await dockerInstructions()).findLast((line) => line.startsWith("ENV ")) ?? "";
  const words = last.slice("ENV ".length).split(/\s+/).map((word) => word.split("="));
  return Object.fromEntries(words.map(([name = "", value = ""]) => [name, value]));
}
