import { assertEquals } from "#assert";
import { scanSource } from "../../harness/source_scan.ts";
import { shrunk, unexpected } from "../../harness/tidy_exceptions.ts";
import { strayFiles } from "../../harness/tracked_files.ts";
import { unusedExports } from "../../harness/unused_exports.ts";

Deno.test("tidy: a stray file is found, and an ignored one is not", () => {
  const paths = [
    "isolate-0x55-1-v8.log",
    "main.ts",
    "notes.txt",
    "data/weir.db",
    "src/data/a.db",
    "a/b.cpuprofile",
  ];
  assertEquals(strayFiles(paths, "/data/\n*.cpuprofile\n"), [
    "isolate-0x55-1-v8.log",
    "notes.txt",
    "src/data/a.db",
  ]);
});

Deno.test("tidy: an exception allows the findings of today, and no fewer", () => {
  const found = ["src/a/b.ts:1: x", "src/a/b.ts:2: y", "src/a/c.ts has z", "main.ts:3: w"];
  const kept = { "src/a": { "c.ts": "the protocol requires it" }, ".": { "main.ts": 1 } };
  const tooMany = { ...kept, "src/a": { "b.ts": 3, "c.ts": "", "d.ts": "gone" } };
  const list = "tests/harness/tidy_exceptions.json";
  assertEquals(unexpected(found, { ...kept, "src/a": { "b.ts": 2, ...kept["src/a"] } }), []);
  assertEquals(unexpected(found, { ...kept, "src/a": { "b.ts": 1, ...kept["src/a"] } }), found.slice(0, 2));
  assertEquals(unexpected(found, tooMany), [
    `${list}: src/a/b.ts: 3, expected 2`,
    `${list}: src/a/c.ts: , expected 1`,
    `${list}: src/a/d.ts: gone, expected 0`,
  ]);
  const shrunkList = { rule: { "src/a": { "b.ts": 2, "c.ts": "" }, ".": { "main.ts": 1 } } };
  assertEquals(shrunk({ rule: tooMany, other: kept }, new Map([["rule", found]])), shrunkList);
});

Deno.test("tidy: an export that no other file imports is found", () => {
  const files = {
    "src/a.ts":
      "export const a = 1; a;\nexport function b() {}\nexport interface C {}\nexport { d as e, f };",
    "src/g.ts":
      'import { b as c } from "./a.ts";\nexport { e } from "./a.ts"; import * as all from "./h.ts";',
    "src/h.ts": 'export const h = 1;\nconst { C } = await import("./a.ts");',
    "src/rest/mod.ts": "export const i = 1;",
    "tests/j.ts": "export class J {}\nexport const { k, l: m } = j;\nexport async function n() {}",
    "tests/o.ts": 'import("./j.ts").J; (await import("./j.ts")).k(); import type { n } from "./j.ts";',
  };
  const unused = unusedExports(Object.entries(files).map(([path, text]) => scanSource(path, text)));
  assertEquals(unused, ["src/a.ts:1: a", "src/a.ts:4: f", "src/g.ts:2: e", "tests/j.ts:2: m"]);
});
