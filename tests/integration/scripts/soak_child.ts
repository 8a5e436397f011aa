import { soak } from "../../../scripts/soak.ts";

/** Runs the file in the first argument with three seeds, and prints whether every test passed. */
console.log(await soak({ seeds: [1, 2, 3], size: "short", files: Deno.args }));
