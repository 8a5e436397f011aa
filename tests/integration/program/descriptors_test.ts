import { assertEquals } from "#assert";
import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { makeCertificates } from "../../harness/certificates.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";

/** The limit of open descriptors, and the number of silent connections. */
const DESCRIPTORS = 256;
const SILENT = 300;
const REACHED = "Connection limit reached";

/** A port that is attacked. */
interface Attacked {
  readonly tools?: readonly Tool[];
  /** Settings that open it, with files in the folder; `folder` is removed at the end. */
  env(folder: string): Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
  address(weir: WeirProcess): Deno.ConnectOptions | Deno.UnixConnectOptions;
  /** Waits until a call there is answered. */
  call(weir: WeirProcess, folder: string): Promise<void>;
}

const PORTS: Readonly<Record<string, Attacked>> = {
  "gRPC over TCP": {
    env: () => ({}),
    address: ({ grpcAddress }) => tcp(grpcAddress),
    call: ({ grpcAddress }) => callGrpc(grpcAddress),
  },
  "gRPC over TLS": {
    tools: ["openssl"],
    async env(folder) {
      await using certificates = await makeCertificates();
      const { server, authority } = certificates;
      const files = { cert: server.certFile, key: server.keyFile, ca: authority.certFile };
      for (const [name, path] of Object.entries(files)) await Deno.copyFile(path, join(folder, name));
      return {
        GRPC_SERVER_USE_TLS: "true",
        GRPC_SERVER_TLS_CERT: join(folder, "cert"),
        GRPC_SERVER_TLS_KEY: join(folder, "key"),
      };
    },
    address: ({ grpcAddress }) => tcp(grpcAddress),
    async call({ grpcAddress }, folder) {
      const ca = await Deno.readFile(join(folder, "ca"));
      return await callGrpc(grpcAddress, grpc.credentials.createSsl(Buffer.from(ca)));
    },
  },
  "gRPC over a unix socket": {
    env: (folder) => ({ GRPC_UDS: join(folder, "grpc.sock") }),
    address: ({ grpcAddress }) => ({ transport: "unix", path: grpcAddress.replace(/^unix:/, "") }),
    call: ({ grpcAddress }) => callGrpc(grpcAddress),
  },
};

function tcp(address: string): Deno.ConnectOptions {
  const [hostname = "", port] = address.split(":");
  return { hostname, port: Number(port) };
}

async function callGrpc(address: string, credentials?: grpc.ChannelCredentials): Promise<void> {
  using client = new GrpcClient(address, { "grpc.ssl_target_name_override": "localhost" }, credentials);
  await until("a call to be answered", async () => !("details" in await decide(client, "shop", "open=1")));
}

/** Connects without a word, waits until all that can be is accepted, and leaves. */
async function connectInSilence(address: Deno.ConnectOptions | Deno.UnixConnectOptions, weir: WeirProcess) {
  const connections: Deno.Conn[] = [];
  try {
    for (let count = 0; count < SILENT; count++) {
      connections.push(await ("path" in address ? Deno.connect(address) : Deno.connect(address)));
    }
    await until("the limit to be logged", () => logged(weir, REACHED).length > 0);
  } finally {
    for (const connection of connections) connection.close();
  }
}

function logged({ stderrLines }: WeirProcess, text: string): readonly string[] {
  return stderrLines.filter((line) => line.includes(text));
}

for (const [port, { tools = [], env, address, call }] of Object.entries(PORTS)) {
  for (const engine of ["native", "grpc-js"]) {
    Deno.test({
      ...needs(tools, `descriptors: ${port}, ${engine}: it serves on after ${SILENT} silent connections`),
      ignore: Deno.build.os !== "linux" || needs(tools, "").ignore,
      async fn() {
        const folder = await Deno.makeTempDir({ prefix: "weir_descriptors_" });
        try {
          await using weir = await startWeir({
            env: { GRPC_ENGINE: engine, ...await env(folder) },
            descriptors: DESCRIPTORS,
          });
          await call(weir, folder);
          await connectInSilence(address(weir), weir);
          await call(weir, folder);
          assertEquals([logged(weir, REACHED).length, await weir.stop()], [1, 0]);
        } finally {
          await Deno.remove(folder, { recursive: true });
        }
      },
    });
  }
}
