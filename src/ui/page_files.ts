const FOLDER = new URL("./page/", import.meta.url);
const NAME = /^[a-z_]+\.(?:css|html|ts)$/;

/** A file of the web page, TypeScript without its types; undefined for an unknown name. */
export async function readPageFile(name: string): Promise<string | undefined> {
  if (!NAME.test(name)) return undefined;
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
