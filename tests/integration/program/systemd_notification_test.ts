import { assertEquals } from "#assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { withTimeout } from "../../../src/base/wait.ts";
import { startWeir } from "../../harness/weir_process.ts";

const REPORT_MS = 60_000;

/** A place for the socket of a service manager, as `NOTIFY_SOCKET` has it and as Deno opens it. */
interface Place {
  readonly name: string;
  readonly path: string;
}

const PLACES: Readonly<Record<string, (folder: string) => Place>> = {
  "a path": (folder) => ({ name: join(folder, "notify"), path: join(folder, "notify") }),
  "an abstract name": () => {
    const name = `weir_${crypto.randomUUID()}`;
    return { name: `@${name}`, path: `\0${name}` };
  },
};

for (const [where, placeOf] of Object.entries(PLACES)) {
  Deno.test(`a service manager at ${where} hears that Weir is ready, and that it stops`, async () => {
    await using folder = await temporaryFolder();
    const { name, path } = placeOf(folder.path);
    using cleanup = new DisposableStack();
    const manager = cleanup.adopt(
      Deno.listenDatagram({ transport: "unixpacket", path }),
      (socket) => socket.close(),
    );
    await using weir = await startWeir({ env: { NOTIFY_SOCKET: name } });
    assertEquals(await received(manager), "READY=1");
    assertEquals(
      (await fetch(`http://${weir.httpAddress}/healthcheck`).then((all) => all.text())).trim(),
      "OK",
    );
    weir.signal("SIGTERM");
    assertEquals(await received(manager), "STOPPING=1");
    assertEquals((await weir.exited).code, 0);
  });
}

Deno.test("a service manager that is not there costs a warning, and neither the start nor the stop", async () => {
  await using folder = await temporaryFolder();
  await using weir = await startWeir({ env: { NOTIFY_SOCKET: join(folder.path, "missing") } });
  assertEquals(await weir.stop(), 0);
  const warnings = weir.stderrLines.filter((line) => line.includes("Cannot report to the service manager"));
  assertEquals(warnings.map((line) => /state="(\S+)"/.exec(line)?.[1]), ["READY=1", "STOPPING=1"]);
});

async function received(manager: Deno.DatagramConn): Promise<string> {
  const silence = () => new Error("Cannot hear of the service: it reports nothing");
  const [bytes] = await withTimeout(manager.receive(), REPORT_MS, systemClock, silence);
  return new TextDecoder().decode(bytes);
}

async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "weir_manager_" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
