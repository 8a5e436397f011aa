import { DESCRIBED_ROUTES, type DescribedRoute, SCHEMAS } from "../../src/http/openapi/described_routes.ts";
import { openApiDocument } from "../../src/http/openapi/document.ts";
import { AUDIT_ACTIONS } from "../../src/webhooks/resources/audit_entry.ts";
import { PROBLEM_CODES } from "../../src/webhooks/api/problem_codes.ts";
import { type GeneratedPage, pagePart, table } from "./generated_page.ts";

const ADMIN_PAGE = "docs/webhooks/admin-api.md";
const API = "/api/v1";

/** The tables of the HTTP APIs. */
export const OPENAPI_PAGES: readonly GeneratedPage[] = [
  pagePart("docs/api.md", "debug paths", debugTable),
  pagePart(ADMIN_PAGE, "calls", callTable),
  pagePart(ADMIN_PAGE, "problem codes", problemTable),
  pagePart(ADMIN_PAGE, "audit actions", auditTable),
];

/** The OpenAPI document of a version; it is not committed, as the code has all of it. */
export function openApiText(version: string): string {
  return `${JSON.stringify(openApiDocument(version), undefined, 2)}\n`;
}

/** The web page is no API. */
const PAGE_ROWS = [
  ["`GET /ui`", "Show the web page", ""],
  ["`GET /ui/live`", "Stream the data of the web page as events", ""],
];

function debugTable(): string {
  const rows = DESCRIBED_ROUTES.filter(({ port }) => port === "debug").map((route) => {
    const names = Object.keys(route.operation.query ?? {}).map((name) => `\`${name}\``);
    return [`\`${route.method} ${route.path}\``, route.operation.summary, names.join(", ")];
  });
  return table(["Path", "What it does", "Parameters"], [...rows, ...PAGE_ROWS]);
}

function callTable(): string {
  const rows = DESCRIBED_ROUTES.filter(({ path }) => path.startsWith(API)).map((route) => {
    const call = `\`${route.method} ${route.path}\``;
    return [call, route.operation.summary, roleCell(route), bodyCell(route), answerCell(route)];
  });
  return table(["Call", "What it does", "Role", "Body", "Status"], rows);
}

/** The role that a token requires; empty where another key opens the call. */
function roleCell({ operation }: DescribedRoute): string {
  return "role" in operation ? `\`${operation.role}\`` : "";
}

/** Required fields, and in brackets optional ones. */
function bodyCell({ operation: { body } }: DescribedRoute): string {
  if (body === undefined) return "";
  const name = body.schema.$ref?.split("/").at(-1) ?? "";
  const { properties = {}, required = [] } = SCHEMAS[name] ?? body.schema;
  const optional = Object.keys(properties).filter((field) => !required.includes(field));
  const fields = [...required.map((field) => `\`${field}\``), ...optional.map((field) => `[\`${field}\`]`)];
  return fields.length === 0 ? "" : fields.join(", ");
}

function answerCell({ operation: { answers } }: DescribedRoute): string {
  return Object.keys(answers).join(", ");
}

function problemTable(): string {
  const rows = Object.entries(PROBLEM_CODES).map((
    [code, [status, when]],
  ) => [`\`${code}\``, String(status), when]);
  return table(["Code", "Status", "When"], rows);
}

function auditTable(): string {
  return table(
    ["Action", "When"],
    Object.entries(AUDIT_ACTIONS).map(([action, when]) => [`\`${action}\``, when]),
  );
}
