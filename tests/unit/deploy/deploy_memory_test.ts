import { assertEquals } from "@std/assert";
import { deployText, deployTree, manifestObjects, type Tree } from "../../harness/deploy_files.ts";

const README = new URL("../../../README.md", import.meta.url);
const MIB = 1_048_576;
const MB = 1_000_000;
/** A limit has to leave that much beyond what was measured, and what is reserved that much of it. */
const TO_SPARE = 1.25;

Deno.test("the limits of memory have room for what the bench of the README has measured", async () => {
  const wanted = TO_SPARE * await measured(/^\| 1,000,000 distinct values .*\| (\d+) MB;/m);
  const limits = await limitsOfMemory();
  assertEquals(Object.entries(limits).filter(([, bytes]) => !(bytes >= wanted)), []);
});

Deno.test("what Kubernetes reserves is what an idle Weir has, and more", async () => {
  const wanted = TO_SPARE * await measured(/^\| resident memory idle .*\| (\d+) MB /m);
  assertEquals(bytesOf((await weirResources()).requests?.memory) >= wanted, true);
});

async function limitsOfMemory(): Promise<Record<string, number>> {
  const services = (await deployTree("compose.yaml")).services ?? {};
  const units = await Promise.all(["weir.service", "weir@.service"].map(async (file) => {
    return [file, bytesOf(/^MemoryHigh=(.*)$/m.exec(await deployText(file))?.[1])] as const;
  }));
  return {
    "compose.yaml": bytesOf(services.weir?.mem_limit),
    "kubernetes.yaml": bytesOf((await weirResources()).limits?.memory),
    ...Object.fromEntries(units),
  };
}

async function weirResources(): Promise<Tree> {
  const pod = (await manifestObjects()).get("Deployment weir")?.spec?.template?.spec;
  return Object.values(pod?.containers ?? {})[0]?.resources ?? {};
}

async function measured(row: RegExp): Promise<number> {
  return MB * Number(row.exec(await Deno.readTextFile(README))?.[1]);
}

function bytesOf(text: unknown): number {
  return MIB * Number(/^(\d+)(?:m|M|Mi)$/.exec(String(text))?.[1]);
}
