import { assertEquals, assertMatch, assertThrows } from "#assert";
// The validator of the library requires these three packages.
import "ajv";
import "ajv-formats";
import "ajv-formats-draft2019";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { join } from "node:path";
import { releaseNotes } from "../../../scripts/release/notes.ts";
import { type Lock, sbomOf } from "../../../scripts/release/sbom.ts";
import { release } from "../../../scripts/release.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const TIME = new Date("2026-11-23T10:00:00Z");
const CHANGELOG = `# Changelog

## Unreleased

- Later.

## 0.2.0 - 2026-11-23

### Added

- A [page](docs/page.md#top), see [below](#changed) and [there](https://example.com/a).

## 0.1.10

- First.

## 0.1.0

`;

const NOTES: readonly {
  readonly name: string;
  readonly version: string;
  readonly url?: string;
  readonly text: string;
}[] = [
  {
    name: "the section, without links that lead elsewhere",
    version: "0.2.0",
    text:
      "### Added\n\n- A [page](docs/page.md#top), see [below](#changed) and [there](https://example.com/a).\n",
  },
  {
    name: "links lead to the sources of the version",
    version: "0.2.0",
    url: "https://host/weir/blob/v0.2.0/",
    text: "### Added\n\n- A [page](https://host/weir/blob/v0.2.0/docs/page.md#top), see " +
      "[below](https://host/weir/blob/v0.2.0/CHANGELOG.md#changed) and [there](https://example.com/a).\n",
  },
  { name: "a version without a date", version: "0.1.10", text: "- First.\n" },
];

for (const { name, version, url, text } of NOTES) {
  Deno.test(`release notes: ${name}`, () => {
    assertEquals(releaseNotes(CHANGELOG, { version, url }), text);
  });
}

Deno.test("release notes: a version that the changelog lacks, or has nothing of, is rejected", () => {
  const refused = (version: string) =>
    assertThrows(() => releaseNotes(CHANGELOG, { version, url: undefined })).message;
  assertMatch(
    refused("0.1.1"),
    /^Cannot release 0\.1\.1: CHANGELOG\.md has no section "## 0\.1\.1 - YYYY-MM-DD"; /,
  );
  assertEquals(refused("0.1.0"), "Cannot release 0.1.0: its section in CHANGELOG.md is empty");
});

Deno.test("release notes: the version in deno.json has some", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const changelog = await Deno.readTextFile(join(ROOT, "CHANGELOG.md"));
  assertMatch(releaseNotes(changelog, { version, url: undefined }), /^###? \w/);
});

const HASH = `sha512-${btoa("a".repeat(64))}`;
const LOCK: Lock = {
  version: "5",
  specifiers: { "npm:@a/tool@1.0.0": "1.0.0_peer@2.0.0", "npm:test@3.0.0": "3.0.0" },
  npm: {
    "@a/tool@1.0.0_peer@2.0.0": { integrity: HASH, dependencies: ["peer", "twice@1.0.0"] },
    "peer@2.0.0": { integrity: HASH },
    "test@3.0.0": { integrity: HASH, optionalDependencies: ["other@npm:twice@2.0.0"] },
    "twice@1.0.0": { integrity: HASH },
    "twice@2.0.0": { integrity: HASH },
  },
};
const LICENSES = new Map([
  ["@a/tool@1.0.0_peer@2.0.0", "MIT"],
  ["peer@2.0.0", undefined],
  ["twice@1.0.0", "BSD-3-Clause OR MIT"],
]);

Deno.test("bill of materials: packages, hashes, licenses, scopes and dependencies of a lock", async () => {
  const text = sbomOf({ version: "1.2.3", deno: "2.9.3", time: TIME, lock: LOCK, licenses: LICENSES });
  assertEquals(await flaws(text), null);
  const bom = JSON.parse(text);
  assertEquals([bom.metadata.timestamp, bom.metadata.component.purl], [
    "2026-11-23T10:00:00.000Z",
    "pkg:generic/weir@1.2.3",
  ]);
  assertEquals(
    bom.components.map(({ purl, scope, licenses }: Record<string, unknown>) => [purl, scope, licenses]),
    [
      ["pkg:github/denoland/deno@v2.9.3", "required", [{ expression: "MIT" }]],
      ["pkg:npm/%40a/tool@1.0.0", "required", [{ expression: "MIT" }]],
      ["pkg:npm/peer@2.0.0", "required", undefined],
      ["pkg:npm/test@3.0.0", "excluded", undefined],
      ["pkg:npm/twice@1.0.0", "required", [{ expression: "BSD-3-Clause OR MIT" }]],
      ["pkg:npm/twice@2.0.0", "excluded", undefined],
    ],
  );
  assertEquals(
    Object.fromEntries(
      bom.dependencies.map(({ ref, dependsOn }: Record<string, string>) => [ref, dependsOn]),
    ),
    {
      "pkg:generic/weir@1.2.3": [
        "pkg:github/denoland/deno@v2.9.3",
        "pkg:npm/%40a/tool@1.0.0",
        "pkg:npm/test@3.0.0",
      ],
      "pkg:github/denoland/deno@v2.9.3": [],
      "pkg:npm/%40a/tool@1.0.0": ["pkg:npm/peer@2.0.0", "pkg:npm/twice@1.0.0"],
      "pkg:npm/peer@2.0.0": [],
      "pkg:npm/test@3.0.0": ["pkg:npm/twice@2.0.0"],
      "pkg:npm/twice@1.0.0": [],
      "pkg:npm/twice@2.0.0": [],
    },
  );
});

Deno.test("bill of materials: that of deno.lock follows the schema of CycloneDX, and has every package once", async () => {
  const lock: Lock = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.lock")));
  const text = sbomOf({ version: "1.2.3", deno: "2.9.3", time: TIME, lock, licenses: new Map() });
  assertEquals(await flaws(text), null);
  const refs: string[] = JSON.parse(text).components.map((component: Record<string, string>) =>
    component["bom-ref"]
  );
  assertEquals([refs.length, refs.length > Object.keys(lock.npm).length / 2], [new Set(refs).size, true]);
});

Deno.test("bill of materials: a lock of another kind is rejected", () => {
  const refused = (lock: Lock) =>
    assertThrows(() => sbomOf({ version: "1", deno: "2", time: TIME, lock, licenses: LICENSES })).message;
  assertEquals(
    refused({ ...LOCK, version: "6" }),
    'Cannot describe deno.lock of version "6": expected version 5',
  );
  const lacking = { ...LOCK, npm: { "a@1.0.0": { integrity: HASH, dependencies: ["b"] } }, specifiers: {} };
  assertEquals(refused(lacking), 'Cannot describe deno.lock: it lacks the package "b"');
});

const WRONG: readonly [args: string[], line: string][] = [
  [["--targets"], "Unknown flag --targets; did you mean --target?"],
  [["--output="], 'Cannot read flag "--output": expected a folder'],
  [["--url", "weir"], 'Cannot read flag "--url": expected a URL, got "weir"'],
  [["now"], 'Cannot release "now": expected only flags'],
];

for (const [args, line] of WRONG) {
  Deno.test(`release ${args.join(" ")}: is rejected`, async () => {
    const lines: string[] = [];
    const write = (text: string) => void lines.push(text);
    assertEquals([await release(args, { stdout: write, stderr: write }), lines], [2, [line]]);
  });
}

/** The objections of the official schema to a bill of materials; null for none. */
async function flaws(text: string): Promise<unknown> {
  return await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);
}
