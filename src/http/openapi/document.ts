import {
  choiceSchema,
  idSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import { PROBLEM_TYPE, STATUS_PHRASES } from "../../base/problem_details.ts";
import type { Credential, OperationAnswer } from "../../webhooks/api/operation.ts";
import { PROBLEM_CODES, type ProblemCode } from "../../webhooks/api/problem_codes.ts";
import { DESCRIBED_ROUTES, type DescribedRoute, SCHEMAS, TAGS } from "./described_routes.ts";

const HTTP_PORT = [{ url: "http://localhost:8080", description: "The HTTP port, or `ADMIN_ADDR`" }];
const DEBUG_PORT = [{ url: "http://localhost:6070", description: "The debug port" }];
const DESCRIPTION = [
  "The HTTP APIs of Weir: decisions, health, administration and the debug port.",
  "Paths under `/api/v1` exist only if an administration token or `WEBHOOK_STORE` is set.",
  "Every response has an `X-Request-Id`: the value from the request, or a new one.",
  "`GET` outside of `/api/v1` also accepts `HEAD`.",
].join(" ");
const SCHEMES: Readonly<
  Record<Exclude<Credential, "signature">, readonly [name: string, description: string]>
> = {
  admin: ["adminToken", "A token of `ADMIN_TOKEN`, `ADMIN_TOKENS` or `ADMIN_TOKENS_FILE`"],
  trigger: ["triggerKey", "A trigger key, `svct_…`"],
  event: ["eventKey", "An event key, `svce_…`"],
  debug: ["debugToken", "`DEBUG_TOKEN`, if it is set"],
};
const EXAMPLE_ID = "2cbaae4d-d015-44da-860c-dad302d554aa";
const FOREIGN_PAGE = {
  detail: "Cannot answer a page of another site: only the pages of this service are served",
  reason: "pages of other sites are not served",
};
const REQUEST_ID = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };
const RETRY_AFTER = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };

const PROBLEM_FIELDS: SchemaProperties = {
  type: choiceSchema(["about:blank"], "Always `about:blank`."),
  title: textSchema("The reason phrase of the status."),
  status: integerSchema("The status."),
  detail: textSchema("Human-readable explanation."),
  requestId: textSchema("The `X-Request-Id` of the response."),
};
const FIELD: SchemaProperties = { field: textSchema("The invalid field, parameter or header.") };
const PROBLEMS: SchemaProperties = {
  Problem: objectSchema({ ...PROBLEM_FIELDS, code: textSchema("The stable code of the problem.") }, {
    ...FIELD,
    candidates: listSchema(textSchema("An identifier."), "Identifiers that a shortened one may mean."),
  }),
  Refusal: objectSchema({ ...PROBLEM_FIELDS, reason: textSchema("Short description of the error.") }, FIELD),
};

/** The OpenAPI document of the HTTP APIs, for a version of Weir. */
export function openApiDocument(version: string): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of DESCRIBED_ROUTES) {
    const item = paths[route.path] ??= route.port === "debug" ? { servers: DEBUG_PORT } : {};
    item[route.method.toLowerCase()] = operationObject(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Weir",
      version,
      description: DESCRIPTION,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: HTTP_PORT,
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: { ...PROBLEMS, ...SCHEMAS },
      securitySchemes: Object.fromEntries(
        Object.values(SCHEMES).map((
          [name, description],
        ) => [name, { type: "http", scheme: "bearer", description }]),
      ),
      headers: {
        RequestId: headerObject(textSchema("The identifier of the request.")),
        RetryAfter: headerObject(integerSchema("Seconds to wait before a retry.", { minimum: 1 })),
      },
      responses: {
        ...problemResponses(),
        Refused: {
          description: "Rejected before the operation, such as 403 for a page of another site, or 500.",
          headers: REQUEST_ID,
          content: {
            [PROBLEM_TYPE]: {
              schema: { anyOf: [schemaOf("Refusal"), schemaOf("Problem")] },
              example: { ...problemBase(403), ...FOREIGN_PAGE, requestId: EXAMPLE_ID },
            },
          },
        },
      },
    },
  };
}

function operationObject(route: DescribedRoute): unknown {
  const { operation, tag } = route;
  const { id, summary, description, body } = operation;
  const parameters = parametersOf(route);
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: securityOf(route.credentials),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : {
      requestBody: {
        required: body.isOptional !== true,
        content: { "application/json": { schema: body.schema, example: body.example } },
      },
    }),
    responses: responsesOf(route),
  };
}

/** An operation without credentials is open. */
function securityOf(credentials: readonly Credential[]): unknown[] {
  const required = credentials.flatMap((credential) =>
    credential === "signature" ? [] : [{ [SCHEMES[credential][0]]: [] }]
  );
  // Without `DEBUG_TOKEN` the debug port is open, and a document cannot describe the signatures of providers.
  const isOptional = credentials.includes("debug") || credentials.includes("signature");
  return isOptional ? [{}, ...required] : required;
}

function parametersOf({ path, operation }: DescribedRoute): unknown[] {
  const { query = {}, headers = {} } = operation;
  const ofPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => {
    const schema = name === "name" ? textSchema("The name of the trigger.") : idSchema("The identifier.");
    return { ...parameter(name, "path", schema), required: true };
  });
  return [
    ...ofPath,
    ...Object.entries(query).map(([name, schema]) => ({
      ...parameter(name, "query", schema),
      required: operation.requiredQuery?.includes(name) === true,
    })),
    ...Object.entries(headers).map(([name, schema]) => parameter(name, "header", schema)),
  ];
}

function parameter(name: string, place: string, { description, ...schema }: JsonSchema) {
  return { name, in: place, description, schema };
}

function headerObject({ description, ...schema }: JsonSchema): unknown {
  return { description, schema };
}

function responsesOf({ operation, problems, refusals }: DescribedRoute): Record<string, unknown> {
  const responses: Record<string, unknown> = {};
  for (const [status, answer] of Object.entries(operation.answers)) {
    responses[status] = responseObject(answer);
  }
  for (const [status, codes] of byStatus(problems)) {
    responses[status] = { $ref: `#/components/responses/${nameOf(codes)}` };
  }
  for (const [status, description] of Object.entries(refusals)) {
    responses[status] = refusalResponse(Number(status), description);
  }
  return { ...responses, default: { $ref: "#/components/responses/Refused" } };
}

function responseObject({ description, schema, example, headers = {}, mediaType }: OperationAnswer): unknown {
  const described = Object.entries(headers).map(([name, one]) => [name, headerObject(one)]);
  return {
    description,
    headers: { ...REQUEST_ID, ...Object.fromEntries(described) },
    ...(schema === undefined ? {} : { content: { [mediaType ?? "application/json"]: { schema, example } } }),
  };
}

function byStatus(problems: readonly ProblemCode[]): ReadonlyMap<number, readonly ProblemCode[]> {
  return Map.groupBy(problems, (code) => PROBLEM_CODES[code][0]);
}

/** The name of a response that operations with the same codes share. */
function nameOf(codes: readonly ProblemCode[]): string {
  return codes.join(".");
}

function problemResponses(): Record<string, unknown> {
  const responses = DESCRIBED_ROUTES.flatMap(({ problems }) =>
    [...byStatus(problems)].map(([status, codes]) => [nameOf(codes), problemResponse(status, codes)] as const)
  );
  return Object.fromEntries(responses.toSorted(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));
}

function problemResponse(status: number, codes: readonly ProblemCode[]): unknown {
  const examples = codes.map((code) => {
    const value = { ...problemBase(status), detail: PROBLEM_CODES[code][1], code, requestId: EXAMPLE_ID };
    return [code, { value }];
  });
  const ofCode = objectSchema({ code: choiceSchema(codes, "The code.") });
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEM_CODES[code][1]}.`).join("\n\n"),
    headers: { ...REQUEST_ID, ...(status === 429 || status === 503 ? RETRY_AFTER : {}) },
    content: {
      [PROBLEM_TYPE]: {
        schema: { allOf: [schemaOf("Problem"), ofCode] },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function refusalResponse(status: number, description: string): unknown {
  const example = { ...problemBase(status), detail: description, reason: description, requestId: EXAMPLE_ID };
  return {
    description,
    headers: REQUEST_ID,
    content: { [PROBLEM_TYPE]: { schema: schemaOf("Refusal"), example } },
  };
}

function problemBase(status: number) {
  return { type: "about:blank", title: STATUS_PHRASES[status] ?? "Error", status };
}
