/** Every name that the code gives to its users has one row in the reference tables, and pages link to these. */
import { assertEquals } from "#assert";
import { namedMetrics } from "../../../src/base/metrics.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { createHealthService } from "../../../src/grpc/health_service.ts";
import { createRateLimitGrpcService } from "../../../src/grpc/rate_limit_service.ts";
import { createReflectionServices } from "../../../src/grpc/reflection_service.ts";
import { Health } from "../../../src/base/health.ts";
import { DESCRIBED_ROUTES } from "../../../src/http/openapi/described_routes.ts";
import { METRIC_SECTIONS } from "../../../src/serve/metric_groups.ts";
import { settingEntries } from "../../../src/settings/table.ts";
import { CHECK_KIND } from "../../../src/webhooks/deliveries/endpoint_check.ts";
import { AUDIT_ACTIONS } from "../../../src/webhooks/resources/audit_entry.ts";
import { COMPLETED_KIND } from "../../../src/webhooks/model/completion_event.ts";
import { DELIVERY_FAILED_KIND, ENDPOINT_KINDS } from "../../../src/webhooks/model/endpoint_events.ts";
import { mentionProblems, type Reference, rowProblems } from "../../harness/document_tables.ts";
import { documentPages } from "../../harness/documents.ts";

const API = "/api/v1";
const ADMIN_PAGE = "docs/webhooks/admin-api.md";
const METRIC_GROUPS = METRIC_SECTIONS.flatMap(({ groups }) => groups);
const ENDPOINTS = DESCRIBED_ROUTES.map(({ method, path }) => `${method} ${shortPath(path)}`);
const GRPC_SERVICES = [
  createRateLimitGrpcService(() => Promise.reject(new Error("no rules"))),
  createHealthService(new Health()),
  ...createReflectionServices(() => []),
];
const COMMANDS = commandNames();
const PAGES = documentPages();
/** A release note keeps its names when their reference has gone. */
const LINKING_PAGES = PAGES.filter(({ path }) => path !== "CHANGELOG.md");

const REFERENCES: readonly Reference[] = [
  {
    kind: "setting",
    names: settingEntries().map(([name]) => name),
    pages: ["docs/settings.md"],
    nameOf: (code) => code.replace(/=.*/s, ""),
  },
  { kind: "command", names: COMMANDS, pages: ["docs/cli.md"], nameOf: commandOf },
  {
    kind: "metric",
    names: METRIC_GROUPS.flatMap(({ prefix, metrics }) => Object.keys(metrics).map((name) => prefix + name)),
    pages: ["docs/observability.md"],
    nameOf: (code) => code.replace(/\.<\w+>$/, ""),
    aliases: METRIC_GROUPS.flatMap((group) =>
      (["counter", "gauge", "timer"] as const).flatMap((kind) =>
        namedMetrics(group, kind).flatMap((
          { fullName, pullName },
        ) => [fullName, pullName.replaceAll(".", "_")])
      )
    ),
  },
  {
    kind: "endpoint",
    names: ENDPOINTS,
    pages: ["docs/api.md", ADMIN_PAGE],
    nameOf: (code) => shortPath(code.replace(/\?.*/s, "")),
    aliases: ENDPOINTS.map((name) => name.replace(/^\w+ /, "")).filter((path) => path !== "/"),
  },
  {
    kind: "gRPC method",
    names: GRPC_SERVICES.flatMap(({ name, methods }) => methods.map((method) => `${name}/${method.name}`))
      .filter((name) => !name.includes(".v1alpha.")),
    pages: ["docs/api.md"],
    aliases: GRPC_SERVICES.flatMap(({ methods }) => methods.map(({ name }) => name)),
  },
  // Some actions have the name of the event that reports them.
  { kind: "audit action", names: Object.keys(AUDIT_ACTIONS), pages: [ADMIN_PAGE], head: "Action" },
  {
    kind: "event kind",
    names: [COMPLETED_KIND, CHECK_KIND, ...Object.values(ENDPOINT_KINDS), DELIVERY_FAILED_KIND],
    pages: ["docs/webhooks/deliveries.md"],
    head: "Kind",
  },
];

for (const reference of REFERENCES) {
  Deno.test(`${reference.kind}: every name has one row in ${reference.pages.join(" or ")}`, () => {
    assertEquals([reference.names.length > 0, rowProblems(PAGES, reference)], [true, []]);
  });

  Deno.test(`${reference.kind}: a page that mentions one links to the reference`, () => {
    assertEquals(mentionProblems(LINKING_PAGES, reference), []);
  });
}

/** The words of every command, such as `weir endpoints add`. */
function commandNames(): string[] {
  const { lone, groups } = documentedCommands();
  return [...lone, ...groups.flatMap(({ commands }) => commands)].map(({ words }) => `weir ${words}`);
}

/** The command of a command line. */
function commandOf(code: string): string {
  const words = code.split(/\s+/);
  return [3, 2].map((count) => words.slice(0, count).join(" ")).find((name) => COMMANDS.includes(name)) ??
    code;
}

/** A path as the tables have it: without the start of the administration, and with `<…>` around parameters. */
function shortPath(text: string): string {
  return text.replace(API, "").replaceAll(/\{(\w+)\}/g, "<$1>");
}
