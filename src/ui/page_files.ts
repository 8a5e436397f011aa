const FOLDER = new URL("./page/", import.meta.url);
const NAME = /^[a-z_]+\.(?:css|html|ts)$/;
const RESOURCES = "resources.ts";

/** A file of the web page, TypeScript without its types; undefined for an unknown name. */
export async function readPageFile(name: string): Promise<string | undefined> {
  if (!NAME.test(name)) return undefined;
  if (name === RESOURCES) return valuesOf(await import("./page/resources.ts"));
  try {
    const text = await Deno.readTextFile(new URL(name, FOLDER));
    // A compiled program contains the page without types.
    if (!name.endsWith(".ts") || Deno.build.standalone) return text;
    // Loaded on the first request.
    const { stripTypeScriptTypes } = await import("node:module");
    return stripTypeScriptTypes(text);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** The exports of a module as values of JSON: a browser cannot import what is outside of the page. */
function valuesOf(module: object): string {
  return Object.entries(module).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
    .join("");
}
