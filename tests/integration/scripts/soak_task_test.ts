import { assertEquals } from "#assert";
import { join } from "node:path";

const CHILD = new URL("./soak_child.ts", import.meta.url).pathname;

Deno.test("soak: runs its files once per seed, and fails when one of them does", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_soak_" });
  try {
    const path = join(folder, "seed_test.ts");
    await Deno.writeTextFile(
      path,
      `Deno.test("seed", () => {
        if (Deno.env.get("SOAK_SIZE") + Deno.env.get("SOAK_SEED") === "short2") throw new Error("no");
      });`,
    );
    const args = ["run", "--allow-all", "--no-check", CHILD, path];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    const lines = new TextDecoder().decode(stdout).split("\n");
    const shown = lines.filter((line) => /^(seed \d|failed: |\d passed|repeat with|true|false)/.test(line));
    const [passed, failed] = ["1 passed, 0 failed", "0 passed, 1 failed"];
    assertEquals(shown.map((line) => line.replace(/ \(.*/, "")), [
      ...["seed 1, short", passed],
      ...["seed 2, short", "failed: seed", failed, "repeat with: deno task soak --seed 2 --short"],
      ...["seed 3, short", passed],
      "false",
    ]);
    const counted = lines.filter((line) => /_test\.ts: \d passed, \d failed, \d+\.\d s$/.test(line));
    assertEquals(counted.length, 3);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
