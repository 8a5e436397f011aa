import { assertEquals } from "@std/assert";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { readSpans } from "../../../src/telemetry/tracing_read_spans.ts";
import { renderSpans } from "../../../src/telemetry/tracing_span_list.ts";
import { SpanPacker } from "../../../src/telemetry/tracing_span_pack.ts";
import { carrySpans, TextExporter } from "../../../src/telemetry/tracing_text_exporter.ts";
import { EnvironmentOf } from "./tracing_environment.ts";
import { spanNamed } from "../../harness/tracing_exporter_double.ts";

Deno.test("text exporter: resource, scope and order of spans are those of the SDK's request", async () => {
  const bodies: string[] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, async (request) => {
    bodies.push(await request.text());
    return Response.json({}, { headers: { connection: "close" } });
  });
  using _ = new EnvironmentOf({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}` });
  const writer = new SpanPacker();
  for (const name of ["a", "b", "a"]) writer.add(spanNamed(name));
  const lists = [renderSpans(writer.take())];
  for (const name of ["ö", "d"]) writer.add(spanNamed(name));
  lists.push(renderSpans(writer.take()));
  const maker = {
    resource: resourceFromAttributes({ "service.name": 'a "b"', count: 2, zones: ["x", "y"] }),
    scope: { name: "weir", version: "1" },
  };
  const exporter = new TextExporter(maker);
  const [ours, theirs] = [lists.flatMap(carrySpans), lists.flatMap((list) => readSpans(list, maker))];
  // Whole lists, a list from its middle to the middle of the next and spans that do not follow each other.
  const choices = [[0, 1, 2, 3, 4], [1, 2, 3], [0, 2, 4], [4, 0]];
  const wanted = [];
  for (const places of choices) {
    const chosen = places.flatMap((place) => ours[place] ?? []);
    const code = await new Promise((resolve) => exporter.export(chosen, (one) => resolve(one.code)));
    assertEquals([code, chosen.length], [0, places.length]);
    const sdk = JsonTraceSerializer.serializeRequest(places.flatMap((place) => theirs[place] ?? []));
    wanted.push(partsOf(new TextDecoder().decode(sdk)));
  }
  await exporter.shutdown();
  assertEquals(bodies.map(partsOf), wanted);
});

/** What is around the spans of a request, and their names. */
function partsOf(body: string): unknown {
  const { resourceSpans: [{ scopeSpans: [{ spans, ...scope }], ...resource }] } = JSON.parse(body);
  return [resource, scope, spans.map(({ name }: { readonly name: string }) => name)];
}
