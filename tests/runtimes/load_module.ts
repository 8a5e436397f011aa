/** Loads a module, given by its path from the root, without running it as the main one. */
const [path = ""] = Deno.args;
await import(new URL(`../../${path}`, import.meta.url).href);
console.log(`Loaded ${path}`);
Deno.exit(0);
