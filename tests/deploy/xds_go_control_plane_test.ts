import { assertEquals } from "#assert";
import { ChildProcess } from "../harness/child_process.ts";
import { freePort } from "../harness/free_port.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { needing, requireTool } from "../harness/tools.ts";
import { eventually, until } from "../harness/until.ts";

const DAY = 4;
const NO_UNIT = 99;
const REFUSAL = "resource \"shop\": descriptors[0].rate_limit.unit: invalid rate limit unit '99'; " +
  "expected one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR";

needing("go-control-plane").test(
  "go-control-plane: versions are acknowledged, refused with the reason, and sent again on a new stream",
  () => playVersions(requireTool("go-control-plane")),
);

async function playVersions(program: string): Promise<void> {
  const [port, adminPort] = [freePort(), freePort()];
  const env = {
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${port}`,
    CONFIG_GRPC_XDS_NODE_ID: "edge",
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "100ms",
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "100ms",
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: "200ms",
  };
  const set = async (version: string, limit: number, unit = DAY) => {
    await until("the server", async () => {
      const place = `http://127.0.0.1:${adminPort}/set?version=${version}&limit=${limit}&unit=${unit}`;
      const response = await fetch(place).catch(() => undefined);
      await response?.body?.cancel();
      return response?.ok;
    });
  };
  const start = () => new ChildProcess(program, { args: [`${port}`, `${adminPort}`] });
  await using weir = await ServeFixture.begin({ env });
  const rules = () => weir.page("/rlconfig");
  // A refused version is sent again immediately, so the refusal is repeated.
  const seen = ({ stdoutLines }: ChildProcess) => [...new Set(stdoutLines)];
  {
    await using server = start();
    await set("1", 5);
    await weir.opened;
    await eventually(["|", "1|"], () => seen(server));
    const first = await rules();
    await set("2", 6, NO_UNIT);
    await eventually(["|", "1|", `1|${REFUSAL}`], () => seen(server));
    assertEquals(await rules(), first);
    await set("3", 7);
    await eventually(["|", "1|", `1|${REFUSAL}`, "3|"], () => seen(server));
    assertEquals(await rules(), first.replace("version: 1", "version: 3").replace("=5", "=7"));
  }
  await using server = start();
  await set("3", 7);
  await eventually(["3|"], () => seen(server));
  await set("4", 8);
  await eventually(["3|", "4|"], () => seen(server));
}
