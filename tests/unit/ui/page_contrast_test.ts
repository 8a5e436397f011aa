import { assertEquals } from "#assert";

const CSS = new URL("../../../src/ui/page/page.css", import.meta.url);
const RULES = new URL("../../../src/ui/rules.md", import.meta.url);
/** Edges and bars, which are no texts. */
const SHAPES = ["edge", "bar", "bar-over"];
const COLORS = /^\| `([a-z-]+)` +\| ([\d.]+) +\| ([\d.]+) +\| ([^|]+)\|/gm;
const SIZES = /^\| `(--[a-z0-9-]+)` +\| (\d+) px +\|/gm;
/** Declarations of sizes and spaces; 1 px, lengths of layouts and `auto` are none. */
const DECLARED = /^ *(?:font-size|gap|(?:padding|margin)(?:-[a-z-]+)?): (.+);$/gm;
const FREE = /^(?:0|1px|auto|calc\(-1|\*|3rem|5\.5rem|var\(--(?:space|type)-[a-z0-9]+\)+)$/;

Deno.test("page: the rules have the contrasts of the colours, and these stand out", async () => {
  const [css, rules] = await Promise.all([Deno.readTextFile(CSS), Deno.readTextFile(RULES)]);
  const rows = [...rules.matchAll(COLORS)];
  assertEquals(rows.length, 10);
  for (const [, name = "", ...cells] of rows) {
    const grounds = [...(cells[2] ?? "").matchAll(/`([a-z-]+)`/g)].map(([, ground = ""]) => ground);
    for (const [index, scheme] of (["light", "dark"] as const).entries()) {
      const colors = colorsOf(css, scheme);
      const seen = Math.min(...grounds.map((ground) => contrastOf(colors, name, ground)));
      assertEquals([name, scheme, cells[index]], [name, scheme, seen.toFixed(2)]);
      assertEquals(tooPale(colors, [[name, grounds]], SHAPES.includes(name) ? 3 : 4.5), []);
    }
  }
});

Deno.test("page: all sizes and spaces are those of the rules", async () => {
  const [css, rules] = await Promise.all([Deno.readTextFile(CSS), Deno.readTextFile(RULES)]);
  const written = [...rules.matchAll(SIZES)].map(([, name, pixels]) => [name, Number(pixels)] as const);
  const used = [...css.matchAll(/^ *(--(?:space|type)-[a-z0-9]+): ([\d.]+)rem;$/gm)];
  assertEquals(new Map(used.map(([, name, rem]) => [name, Number(rem) * 16] as const)), new Map(written));
  const values = [...css.matchAll(DECLARED)].flatMap(([, value = ""]) => value.split(" "));
  assertEquals([values.length > 100, values.filter((value) => !FREE.test(value))], [true, []]);
});

Deno.test("page: contrast is computed as WCAG 2 defines it", () => {
  assertEquals(contrast("#000000", "#ffffff"), 21);
  assertEquals(contrast("#767676", "#ffffff").toFixed(2), "4.54");
  const colors = new Map([["text", "#777777"], ["panel", "#ffffff"]]);
  assertEquals(tooPale(colors, [["text", ["panel"]]], 4.5), ["text on panel: 4.48"]);
});

/** The colours of a scheme: the dark ones are in the second block, and those that are not there in the first. */
function colorsOf(css: string, scheme: "light" | "dark"): Map<string, string> {
  const blocks = [...css.matchAll(/:root \{([^}]*)\}/g)].map(([, block = ""]) => block);
  assertEquals(blocks.length, 2);
  const used = scheme === "light" ? blocks.slice(0, 1) : blocks;
  return new Map(
    used.flatMap((block) =>
      [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = "", color = ""]) =>
        [name, color] as const
      )
    ),
  );
}

function tooPale(
  colors: ReadonlyMap<string, string>,
  pairs: readonly (readonly [string, readonly string[]])[],
  least: number,
): string[] {
  return pairs.flatMap(([name, grounds]) =>
    grounds.flatMap((ground) => {
      const seen = contrastOf(colors, name, ground);
      return seen < least ? [`${name} on ${ground}: ${seen.toFixed(2)}`] : [];
    })
  );
}

function contrastOf(colors: ReadonlyMap<string, string>, name: string, ground: string): number {
  return contrast(colors.get(name) ?? "#000000", colors.get(ground) ?? "#000000");
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = parseInt(color.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
