import { assertEquals, assertMatch } from "#assert";
import { listenHttp } from "../../../src/http/listen.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs, requireTool } from "../../harness/tools.ts";
import { listenOptions } from "../../harness/http_fixture.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

for (const version of ["--http1.1", "--http2-prior-knowledge"]) {
  Deno.test({
    ...needs(["curl"], `HEAD by curl ${version} is answered without a body`),
    async fn() {
      const handler = () => Promise.resolve(new Response("a body", { headers: { "x-mine": "1" } }));
      const listener = listenHttp(
        handler,
        listenOptions({ logger: new RecordedLogger(), clock: systemClock }),
      );
      try {
        const url = `http://127.0.0.1:${listener.port}/`;
        await using curl = new ChildProcess(requireTool("curl"), { args: ["-sS", "-I", version, url] });
        const { code } = await curl.exited;
        assertEquals([code, curl.stderrLines], [0, []]);
        assertMatch(curl.stdoutLines.join("\n"), /^HTTP\/(?:1\.1|2) 200[^]*^x-mine: 1$/m);
      } finally {
        await listener.close(0);
      }
    },
  });
}
