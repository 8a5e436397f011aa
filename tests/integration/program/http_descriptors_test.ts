import { assertEquals } from "#assert";
import { makeCertificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";

const DESCRIPTORS = 256;
const SILENT = 300;

/** Opens connections that send nothing until no more can be opened, and closes them all. */
async function flood(port: number): Promise<number> {
  const opened: Deno.Conn[] = [];
  for (let index = 0; index < SILENT; index++) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    if (connection !== undefined) opened.push(connection);
  }
  for (const connection of opened) connection.close();
  return opened.length;
}

for (const scheme of ["http", "https"]) {
  Deno.test({
    ...needs(["openssl"], `every ${scheme} port accepts again after descriptors ran out`),
    ignore: Deno.build.os !== "linux" || needs(["openssl"], "").ignore,
    async fn() {
      await using certificates = await makeCertificates();
      const { certFile, keyFile } = certificates.server;
      const [pull, admin, triggers] = [freePort(), freePort(), freePort()];
      await using weir = await startWeir({
        descriptors: DESCRIPTORS,
        env: {
          HTTP_SERVER_USE_TLS: `${scheme === "https"}`,
          HTTP_SERVER_TLS_CERT: certFile,
          HTTP_SERVER_TLS_KEY: keyFile,
          DISABLE_STATS: "false",
          USE_PULL_METRICS: "true",
          USE_PUSH_STATS: "false",
          PULL_METRICS_ADDR: `127.0.0.1:${pull}`,
          ADMIN_TOKEN: "a-token-of-the-administration-for-tests",
          ADMIN_ADDR: `127.0.0.1:${admin}`,
          WEBHOOK_STORE: `${certificates.folder}/weir.db`,
          TRIGGER_ADDR: `127.0.0.1:${triggers}`,
        },
      });
      using client = Deno.createHttpClient({
        caCerts: [await Deno.readTextFile(certificates.authority.certFile)],
      });
      const portOf = (address: string) => Number(address.split(":").at(-1));
      const ports = [
        { name: "http", port: portOf(weir.httpAddress), scheme, path: "/livez", status: 200 },
        { name: "trigger", port: triggers, scheme, path: "/api/v1/events", status: 405 },
        { name: "debug", port: portOf(weir.debugAddress), scheme: "http", path: "/stats", status: 200 },
        { name: "metrics", port: pull, scheme: "http", path: "/metrics", status: 200 },
        { name: "administration", port: admin, scheme: "http", path: "/api/v1/endpoints", status: 401 },
      ];
      const call = async ({ port, scheme, path }: typeof ports[number]) => {
        const response = await fetch(`${scheme}://localhost:${port}${path}`, { client });
        await response.body?.cancel();
        return response.status;
      };
      const callAll = () =>
        Promise.all(ports.map((one) => until(`an answer of ${one.path}`, () => call(one))));
      const expected = ports.map(({ status }) => status);
      assertEquals(await callAll(), expected);
      const failing = () => weir.stderrLines.filter((line) => line.includes("Cannot accept connections"));
      for (const { port, name } of ports) {
        await flood(port);
        await until(
          `${name} to say that it accepts nothing`,
          () => failing().some((line) => line.includes(name)),
        );
        assertEquals(await callAll(), expected);
      }
      assertEquals(await weir.stop(), 0);
    },
  });
}
