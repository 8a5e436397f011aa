import { type ExporterPort, serveSpanExport } from "../../../src/telemetry/tracing_export_worker.ts";
import { setEnvironment } from "./tracing_environment.ts";

// The thread that exports spans, with the variables that its name holds.
const port = globalThis as unknown as ExporterPort & { readonly name: string };
setEnvironment(JSON.parse(port.name));
serveSpanExport(port);
