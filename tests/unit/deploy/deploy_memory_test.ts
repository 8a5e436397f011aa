import { assertEquals } from "#assert";
import { manifestObjects } from "../../harness/deploy_tools.ts";
import { deployText, deployTree, type Tree } from "../../harness/deploy_files.ts";

const RESULTS = new URL("../../../scripts/bench/results/latest.json", import.meta.url);
const MIB = 1_048_576;
const MB = 1_000_000;
/** A limit and a reservation exceed the measured memory by this factor. */
const MARGIN = 1.25;

Deno.test("memory limits have room for the million counters of the bench", async () => {
  const { million } = await results();
  const wanted = MARGIN * MB * million.residentMb;
  const limits = await limitsOfMemory();
  assertEquals(Object.entries(limits).filter(([, bytes]) => !(bytes >= wanted)), []);
});

Deno.test("the memory request of Kubernetes has room for an idle Weir", async () => {
  const { start } = await results();
  const wanted = MARGIN * MB * start.idleMb;
  assertEquals(bytesOf((await weirResources()).requests?.memory) >= wanted, true);
});

async function limitsOfMemory(): Promise<Record<string, number>> {
  const services = (await deployTree("compose.yaml")).services ?? {};
  const units = await Promise.all(["weir.service", "weir@.service"].map(async (file) => {
    return [file, bytesOf(/^MemoryHigh=(.*)$/m.exec(await deployText(file))?.[1])] as const;
  }));
  return {
    "compose.yaml": bytesOf(services.weir?.mem_limit),
    "kubernetes": bytesOf((await weirResources()).limits?.memory),
    ...Object.fromEntries(units),
  };
}

async function weirResources(): Promise<Tree> {
  const objects = manifestObjects(await deployText("kubernetes/base/weir.yaml"));
  const pod = objects.get("Deployment weir")?.spec?.template?.spec;
  return Object.values(pod?.containers ?? {})[0]?.resources ?? {};
}

async function results(): Promise<{ million: { residentMb: number }; start: { idleMb: number } }> {
  return JSON.parse(await Deno.readTextFile(RESULTS));
}

function bytesOf(text: unknown): number {
  return MIB * Number(/^(\d+)(?:m|M|Mi)$/.exec(String(text))?.[1]);
}
