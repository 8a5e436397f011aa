import { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";
import { ADMIN_TOKEN } from "./webhook_calls.ts";
import { api, ECHO_WORKFLOW, untilStoreIsOpen, WebhookFolder } from "./webhook_weir.ts";
import { type OpenApiDocument, type OpenApiOperation, SchemaCheck } from "./openapi_schema.ts";

/** A call of an operation. */
export interface OperationCall {
  /** The expected status; 200 when absent. */
  readonly status?: number;
  /** The expected code of a problem. */
  readonly code?: string;
  /** Values of the parts of the path in braces, in their order. */
  readonly path?: readonly string[];
  readonly query?: string;
  /** The administration's when absent; empty for none. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, a text as it is. */
  readonly body?: unknown;
}

/** An answer whose body has fields. */
interface OperationAnswer {
  readonly headers: Headers;
  readonly body: AnswerBody;
}

/** A body of an answer. */
interface AnswerBody {
  readonly [name: string]: unknown;
  readonly id: string;
  readonly key: string;
  readonly field: string;
  readonly items: readonly AnswerBody[];
}

/** An operation with its place. */
export interface PlacedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: OpenApiOperation;
}

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors: [{ key: account, rate_limit: { unit: year, requests_per_unit: 5 } }, { key: free, rate_limit: { unlimited: true } }]\n",
};
const WORKFLOWS = {
  "echo.yaml": ECHO_WORKFLOW,
  "stuck.yaml":
    "workflow: stuck\nsteps:\n  - name: wait\n    request: { url: 'http://127.0.0.1:9/' }\n    retry: { attempts: 5, backoff: 1h }\n",
};

/** A running service whose answers are checked against its OpenAPI document. */
export class OpenApiService implements AsyncDisposable {
  readonly document: OpenApiDocument;
  readonly schemas: SchemaCheck;
  readonly http: string;
  readonly debug: string;
  readonly operations: ReadonlyMap<string, PlacedOperation>;
  /** The answers so far, such as `getEndpoint 200` and `getEndpoint not_found`. */
  readonly seen = new Set<string>();
  readonly #stack: AsyncDisposableStack;
  /** The folder of the workflow files. */
  readonly #workflows: string;

  private constructor(
    stack: AsyncDisposableStack,
    fixture: ServeFixture,
    { workflows, document }: { readonly workflows: string; readonly document: OpenApiDocument },
  ) {
    this.#stack = stack;
    this.#workflows = workflows;
    this.document = document;
    this.schemas = new SchemaCheck(document);
    this.http = fixture.httpAddress;
    this.debug = fixture.debugAddress;
    this.operations = new Map(placedOperations(document).map((one) => [one.operation.operationId, one]));
  }

  /** Starts a service with rules, workflows and a store. */
  static async start(env: Readonly<Record<string, string>> = {}): Promise<OpenApiService> {
    await using stack = new AsyncDisposableStack();
    const folder = stack.use(await WebhookFolder.make(WORKFLOWS));
    const fixture = stack.use(await ServeFixture.start({ rules: RULES, env: { ...folder.env, ...env } }));
    const http = fixture.httpAddress;
    await untilStoreIsOpen(http);
    const document = await (await fetch(`http://${http}/openapi.json`)).json();
    return new OpenApiService(stack.move(), fixture, { workflows: folder.workflows, document });
  }

  /** Calls an operation; throws when the answer is not the expected one, or not as the document describes it. */
  async call(operationId: string, call: OperationCall = {}): Promise<OperationAnswer> {
    const { status = 200, code, body, token = ADMIN_TOKEN } = call;
    const { method, path, operation } = this.operation(operationId);
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(this.#urlOf(path, operation, call), {
      method,
      headers: {
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...call.headers,
      },
      ...(text === undefined ? {} : { body: text }),
    });
    const answer = await response.text();
    const what = `${operationId} ${JSON.stringify(call)}: ${response.status} ${answer}`;
    const parsed = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(answer) : answer;
    if (response.status !== status || (code !== undefined && parsed.code !== code)) throw new Error(what);
    const problems = this.#problemsOf(operation, response, parsed);
    if (problems.length > 0) throw new Error(`${what}\n${problems.join("\n")}`);
    this.seen.add(`${operationId} ${parsed.code ?? response.status}`);
    return { headers: response.headers, body: parsed };
  }

  /** Runs the calls without the file of a workflow, which is then there again. */
  async withoutWorkflow(name: string, calls: () => Promise<void>): Promise<void> {
    const file = `${this.#workflows}/${name}.yaml`;
    const text = await Deno.readTextFile(file);
    const statusIs = (status: number) =>
      until(`${status} of the workflow`, async () => {
        return (await api(this.http, `/workflows/${name}`)).status === status;
      });
    await Deno.remove(file);
    await statusIs(404);
    await calls();
    await Deno.writeTextFile(file, text);
    await statusIs(200);
  }

  /** The operation of this identifier. */
  operation(operationId: string): PlacedOperation {
    const placed = this.operations.get(operationId);
    if (placed === undefined) throw new Error(`Cannot find operation "${operationId}" in the document`);
    return placed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #urlOf(path: string, { tags }: OpenApiOperation, { path: parts = [], query }: OperationCall): string {
    const rest = [...parts];
    const filled = path.replace(/\{\w+\}/g, () => rest.shift() ?? "");
    const address = tags.includes("debug") ? this.debug : this.http;
    return `http://${address}${filled}${query === undefined ? "" : `?${query}`}`;
  }

  #problemsOf({ responses }: OpenApiOperation, response: Response, body: unknown): readonly string[] {
    const described = responses[String(response.status)];
    if (described === undefined) return ["the document does not describe this status"];
    const type = response.headers.get("content-type")?.split(";")[0];
    const { content } = described;
    if (content === undefined) return body === "" ? [] : ["the document describes no body"];
    const media = content[type ?? ""];
    return media === undefined
      ? [`the document does not describe the type ${type}`]
      : this.schemas.problems(media.schema, body);
  }
}

/** Every operation of a document, with the responses that it shares with others. */
export function placedOperations({ paths, components }: OpenApiDocument): readonly PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).filter(([method]) => method !== "servers").map(([method, operation]) => {
      const { responses } = operation;
      const resolved = Object.entries(responses).map(([status, { $ref, ...response }]) => {
        return [
          status,
          $ref === undefined ? response : components.responses[$ref.split("/").at(-1) ?? ""] ?? {},
        ];
      });
      const withResponses = { ...operation, responses: Object.fromEntries(resolved) };
      return { method: method.toUpperCase(), path, operation: withResponses };
    })
  );
}
