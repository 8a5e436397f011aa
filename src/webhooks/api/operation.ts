import type { JsonSchema, SchemaProperties } from "../../base/json_schema.ts";
import type { AdministratorRole } from "./administrator.ts";
import type { ProblemCode } from "./problem_codes.ts";

/** A token or key that opens an operation, or the signature of a request. */
export type Credential = "admin" | "trigger" | "signature" | "event" | "debug";

/** One method of a path, described for the OpenAPI document and read by the handler. */
export interface Operation {
  readonly id: string;
  /** In the imperative, without a period. */
  readonly summary: string;
  readonly description?: string;
  /** Any of these opens it, and no token is required when it is empty; the token of its port when absent. */
  readonly credentials?: readonly Credential[];
  readonly query?: SchemaProperties;
  /** Names of the parameters of the query that are required. */
  readonly requiredQuery?: readonly string[];
  readonly body?: OperationBody;
  /** Further headers of the request. */
  readonly headers?: SchemaProperties;
  /** By status. */
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /** Further problems than those of every call of the same kind. */
  readonly problems?: readonly ProblemCode[];
}

/** An operation that the token of an administrator opens. */
export interface AdministrationOperation extends Operation {
  /** The role that it requires: `read` for one that changes nothing and shows no secret. */
  readonly role: AdministratorRole;
}

/** The body of a request, as JSON. */
interface OperationBody {
  readonly schema: JsonSchema;
  readonly example: unknown;
  readonly isOptional?: boolean;
}

/** An answer; without a schema it has no body. */
export interface OperationAnswer {
  readonly description: string;
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly headers?: SchemaProperties;
  /** JSON when absent. */
  readonly mediaType?: string;
}

/** Operations by method and path, such as `POST /endpoints/:id/rotate`. */
export type Operations = Readonly<Record<string, Operation>>;

/** Operations of administrators by method and path. */
export type AdministrationOperations = Readonly<Record<string, AdministrationOperation>>;
