import { assertEquals } from "#assert";
import { hostGuard } from "../../../../src/http/server/request_guards.ts";
import { createRouter } from "../../../../src/http/server/router.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";

Deno.test("a host that is not allowed is refused with the setting that allows it", async () => {
  const handle = hostGuard(["weir.example"])(() => new Response("shown"));
  const router = createRouter([{ path: "/", methods: ["GET"], handle }], {
    logger: new RecordedLogger(),
    clock: new FakeClock(),
  });
  const ask = async (url: string) => {
    const response = await router(new Request(url), new AbortController().signal, "127.0.0.1");
    return { status: response.status, body: await response.text() };
  };
  const { status, body } = await ask("http://ratelimit:6070/");
  const { detail, field, reason } = JSON.parse(body);
  assertEquals([status, field, reason, detail], [
    403,
    "host",
    "the host is not one of DEBUG_ALLOWED_HOSTS",
    'Cannot serve the host "ratelimit": it is not one of DEBUG_ALLOWED_HOSTS; add it there, or use the IP address',
  ]);
  assertEquals(await ask("http://weir.example:6070/"), { status: 200, body: "shown" });
});
