import type { CertificateFiles } from "../harness/certificates.ts";
import { ChildProcess } from "../harness/child_process.ts";
import { requireTool } from "../harness/tools.ts";

/** The methods of `Probe` that a client may be tested with, by the gRPC library of Python. */
const PROGRAM = `
import sys, threading, grpc
from concurrent import futures

def refuse(request, context):
    context.set_trailing_metadata((("x-reason", "test"), ("grpc-status-details-bin", b"\\x08\\x03")))
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, request.decode())

def hold(request, context):
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait()
    return b""

def chat(requests, context):
    for request in requests:
        yield request.upper()

def zeroes(requests, context):
    for request in requests:
        yield bytes(int(request))

UNARY = {
    "Echo": lambda request, context: request,
    "Size": lambda request, context: str(len(request)).encode(),
    "Zeros": lambda request, context: bytes(int(request)),
    "Refuse": refuse,
    "Hold": hold,
}
METHODS = {name: grpc.unary_unary_rpc_method_handler(run) for name, run in UNARY.items()}
METHODS["Chat"] = grpc.stream_stream_rpc_method_handler(chat)
METHODS["Zeroes"] = grpc.stream_stream_rpc_method_handler(zeroes)

class Probe(grpc.GenericRpcHandler):
    def service(self, details):
        service, _, name = details.method[1:].partition("/")
        return METHODS.get(name) if service == "test.Probe" else None

compression = grpc.Compression.Gzip if "gzip" in sys.argv else None
server = grpc.server(futures.ThreadPoolExecutor(64), (Probe(),), compression=compression)
if len(sys.argv) > 3:
    key, cert, ca = (open(path, "rb").read() for path in sys.argv[1:4])
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials(((key, cert),), ca, True))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print("listening on", port, flush=True)
server.wait_for_termination()
`;

/** Options of a python server. */
interface PythonServerOptions {
  /** Its certificate, and the authority that the certificates of clients must have; plain text when absent. */
  readonly tls?: { readonly server: CertificateFiles; readonly authority: CertificateFiles };
  /** True if its answers are compressed. */
  readonly isCompressed?: boolean;
}

/** A gRPC server of the Python library; ended at the end of an \`await using\`. */
export class PythonGrpcServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly port: number;

  /** Starts it on a free port. */
  static async start({ tls, isCompressed = false }: PythonServerOptions = {}): Promise<PythonGrpcServer> {
    const files = tls === undefined ? [] : [tls.server.keyFile, tls.server.certFile, tls.authority.certFile];
    const args = ["-c", PROGRAM, ...files, ...(isCompressed ? ["gzip"] : [])];
    const child = new ChildProcess(requireTool("grpc-python"), { args });
    const { port } = await child.find({ port: /listening on (\d+)/ });
    return new PythonGrpcServer(child, Number(port));
  }

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }
}
