import { assertEquals } from "#assert";
import { join, resolve } from "node:path";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { api } from "../harness/webhook_weir.ts";
import { weirExecutable } from "../harness/weir_command.ts";
import { Machine } from "../harness/weir_machine.ts";

/** Files of the system that the program opens, and what for. */
const SYSTEM: readonly (readonly [path: RegExp, reason: string])[] = [
  [/^\/etc\/ld\.so\.cache$/, "the loader looks up libraries"],
  [/^(?:\/usr)?\/lib(?:64)?\/(?:[\w-]+\/)?lib(?:c|dl|gcc_s|m|pthread|rt)\.so\.\d+$/, "libraries of Deno"],
  [/^(?:\/usr)?\/lib(?:64)?\/(?:[\w-]+\/)?lib(?:nss_\w+|resolv)\.so\.\d+$/, "the C library resolves names"],
  [/^\/etc\/(?:host\.conf|hosts|nsswitch\.conf|resolv\.conf|gai\.conf)$/, "the C library resolves names"],
  [/^\/etc\/(?:localtime|timezone)$|^\/usr\/share\/zoneinfo\//, "the time zone"],
  [/^\/dev\/u?random$/, "random numbers"],
  [/^\/dev\/null$/, "the standard input, and descriptors that Deno reserves"],
  [
    /^\/proc\/(?:self|\d+)\/(?:cgroup|maps|mountinfo|smaps|stat|statm|status)$/,
    "memory and limits of the process",
  ],
  [/^\/proc\/(?:cpuinfo|meminfo|stat|sys\/vm\/overcommit_memory)$/, "memory and processors of the machine"],
  [/^\/sys\/fs\/cgroup\//, "limits of the container"],
  [/^\/sys\/devices\/system\/cpu\//, "processors of the machine"],
  [/^\/sys\/kernel\/mm\/transparent_hugepage\//, "the allocator of memory"],
];
/** A call that opens a file, in the words of strace: the folder that the path is relative to, and the path. */
const OPENED = /^\d+ +(?:openat2?\(\w+<([^>]*)>, |(?:open|creat|execve)\()"([^"]*)"/gm;

Deno.test({
  ...needs(["strace", "redis-server"], "the program opens no file but its own and known ones of the system"),
  async fn() {
    await using machine = await Machine.open();
    await using receiver = await WebhookReceiver.start();
    const outside = await Deno.makeTempDir({ prefix: "weir_outside_" });
    try {
      const trace = join(outside, "trace");
      const env = { TMPDIR: outside, HOME: outside, XDG_CACHE_HOME: outside };
      await using weir = machine.startTraced(["serve"], trace, env);
      await weir.find({ http: /Listening for HTTP on '([^']+)'/ });
      assertEquals(await machine.decide("v"), [200, 2]);
      await until("the store", async () => (await api(machine.http, "/endpoints")).status === 200);
      await api(machine.http, "/endpoints", { body: { url: receiver.url } });
      await api(machine.http, "/events", { body: { event: "order.paid", data: { total: 3 } } });
      await until("the delivery", () => receiver.receptions.length === 1);
      const page = await fetch(`http://${machine.debug}/ui/page.ts`);
      assertEquals([page.status, (await page.text()).includes("import ")], [200, true]);
      const [pid = ""] = (await Deno.readTextFile(trace)).split(" ", 1);
      Deno.kill(Number(pid), "SIGTERM");
      assertEquals((await weir.exited).code, 0, weir.stderrLines.join("\n"));

      const opened = openedIn(await Deno.readTextFile(trace));
      const own = [weirExecutable() ?? "", machine.folder];
      assertEquals(own.filter((path) => !opened.some((other) => isIn(path, other))), []);
      const foreign = opened.filter((path) => {
        return !own.some((folder) => isIn(folder, path)) && !SYSTEM.some(([known]) => known.test(path));
      });
      assertEquals(foreign, []);
      assertEquals(await Array.fromAsync(Deno.readDir(outside), ({ name }) => name), ["trace"]);
    } finally {
      await Deno.remove(outside, { recursive: true });
    }
  },
});

/** The paths that were opened, or would have been if they were there. */
function openedIn(trace: string): string[] {
  const paths = [...trace.matchAll(OPENED)].map(([, folder = "/", path = ""]) => resolve(folder, path));
  return [...new Set(paths)].sort();
}

function isIn(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
