import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";
import { until } from "../../harness/until.ts";

// A named pipe in a watched folder blocks the thread that watches, forever: these tests have a
// separate process, and separate folders around the pipes.

/** A rule file that allows this many requests a day. */
function rules(requestsPerUnit: number): string {
  return `domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: ${requestsPerUnit}}\n`;
}

/** Who is held up by a pipe is so for good: what comes within this long is not. */
const SOON_MS = 30_000;

/** The limit that a decision shows; it has to come soon. */
async function limitOf(weir: WeirProcess): Promise<number> {
  const body = JSON.stringify({ domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });
  const signal = AbortSignal.timeout(SOON_MS);
  const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body, signal });
  const { statuses } = await response.json();
  return statuses[0].currentLimit.requestsPerUnit;
}

async function makePipe(path: string): Promise<void> {
  const { success } = await new Deno.Command("mkfifo", { args: [path] }).output();
  assert(success);
}

/** Starts Weir on `top/root/config` and ends it; it must end by itself, and soon. */
async function withWeir(run: (weir: WeirProcess, top: string) => Promise<void>): Promise<void> {
  const top = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${top}/root/config`, { recursive: true });
    await Deno.writeTextFile(`${top}/root/config/a.yaml`, rules(10));
    await using weir = await startWeir({ env: { RUNTIME_ROOT: join(top, "root") } });
    assertEquals(await limitOf(weir), 10);
    await run(weir, top);
    const begin = performance.now();
    assertEquals(await weir.stop(), 0);
    const tookMs = performance.now() - begin;
    assert(tookMs < SOON_MS, `it took ${tookMs} ms to end`);
  } finally {
    await Deno.remove(top, { recursive: true });
  }
}

for (const place of ["next to the root", "in the root", "in the folder"]) {
  Deno.test(`named pipe ${place}: decisions go on, SIGHUP reads the rules again, SIGTERM ends`, async () => {
    await withWeir(async (weir, top) => {
      const folder = { "next to the root": top, "in the root": `${top}/root` }[place] ?? `${top}/root/config`;
      await makePipe(`${folder}/pipe.yaml`);
      assertEquals(await limitOf(weir), 10);
      await Deno.writeTextFile(`${top}/root/config/a.yaml`, rules(20));
      weir.signal("SIGHUP");
      await until("the rules to be read again", async () => await limitOf(weir) === 20);
    });
  });
}

Deno.test("named pipe: folders that take each other's place next to one are read", async () => {
  await withWeir(async (weir, top) => {
    await makePipe(`${top}/root/pipe`);
    for (let round = 0; round < 20; round++) {
      await Deno.mkdir(`${top}/new${round}`);
      await Deno.writeTextFile(`${top}/new${round}/a.yaml`, rules(11 + round));
      // A folder that was made anew is watched anew, which holds up the thread that watches.
      await Deno.rename(`${top}/root/config`, `${top}/old${round}`);
      await Deno.rename(`${top}/new${round}`, `${top}/root/config`);
      weir.signal("SIGHUP");
      await until("the rules of the new folder", async () => await limitOf(weir) === 11 + round);
    }
  });
});
