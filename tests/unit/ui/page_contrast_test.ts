import { assertEquals } from "#assert";

const CSS = new URL("../../../src/ui/page/page.css", import.meta.url);
/** Texts on what they stand on, and the least contrast that makes them readable. */
const TEXTS: readonly (readonly [string, readonly string[]])[] = [
  ["text", ["ground", "panel", "sunk"]],
  ["quiet", ["ground", "panel", "sunk"]],
  ["accent", ["ground", "panel", "sunk"]],
  ["on-accent", ["accent"]],
  ["good", ["ground", "panel", "sunk", "good-ground"]],
  ["warn", ["ground", "panel", "sunk", "warn-ground"]],
  ["bad", ["ground", "panel", "sunk", "bad-ground"]],
];
/** Edges and bars, which are no texts. */
const SHAPES: readonly (readonly [string, readonly string[]])[] = [
  ["edge", ["panel", "ground"]],
  ["bar", ["panel"]],
  ["bar-over", ["panel"]],
];

for (const scheme of ["light", "dark"] as const) {
  Deno.test(`page: the ${scheme} colours stand out from what is behind them`, async () => {
    const colors = colorsOf(await Deno.readTextFile(CSS), scheme);
    assertEquals([...tooPale(colors, TEXTS, 4.5), ...tooPale(colors, SHAPES, 3)], []);
  });
}

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
      const seen = contrast(colors.get(name) ?? "#000000", colors.get(ground) ?? "#000000");
      return seen < least ? [`${name} on ${ground}: ${seen.toFixed(2)}`] : [];
    })
  );
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
