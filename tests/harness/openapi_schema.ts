import { Ajv2020 } from "ajv";

/** The part of an OpenAPI document that tests read. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, OpenApiResponse>>;
  };
}

/** An operation of the document. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
}

/** A response of an operation. */
interface OpenApiResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

/** A body. */
interface MediaType {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

/** A schema as JSON. */
export interface Schema {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

const FORMATS = {
  "uuid": /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/,
  "uri": /^https?:\/\/\S+$/,
};

/**
 * Checks values against the schemas of a document. An object that has a field without a schema is wrong as well, which
 * the document itself allows for later versions.
 */
export class SchemaCheck {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #schemas: Readonly<Record<string, Schema>>;

  constructor({ components }: Pick<OpenApiDocument, "components">) {
    this.#schemas = components.schemas;
    for (const [name, format] of Object.entries(FORMATS)) this.#ajv.addFormat(name, format);
    const named = Object.entries(components.schemas).map(([name, schema]) => [name, this.#parts(schema)]);
    this.#ajv.addSchema({ $id: "weir", components: { schemas: Object.fromEntries(named) } });
  }

  /** The problems of a value; empty when it is valid. */
  problems(schema: Schema, value: unknown): readonly string[] {
    const validate = this.#ajv.compile(this.#closed(schema));
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) =>
      `${instancePath} ${message} ${JSON.stringify(params)}`
    );
  }

  /** A check whether a schema allows values, for many of them. */
  validator(schema: Schema): (value: unknown) => boolean {
    const validate = this.#ajv.compile(this.#closed(schema));
    return (value) => validate(value) === true;
  }

  /** The schema that a reference names, or the schema itself. */
  resolved(schema: Schema): Schema {
    return schema.$ref === undefined ? schema : this.#schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {};
  }

  /** The schema of a whole value: fields that no part of it names are wrong. */
  #closed(schema: Schema): Schema {
    const parts = this.#parts(schema);
    return this.#isRecord(schema) ? { ...parts, unevaluatedProperties: false } : parts;
  }

  #parts(schema: Schema): Schema {
    const { $ref, properties, allOf, anyOf, items, ...rest } = schema;
    const parts = (list: readonly Schema[]) => list.map((one) => this.#parts(one));
    return {
      ...rest,
      ...($ref === undefined ? {} : { $ref: `weir${$ref}` }),
      ...(allOf === undefined ? {} : { allOf: parts(allOf) }),
      ...(anyOf === undefined ? {} : { anyOf: parts(anyOf) }),
      ...(items === undefined ? {} : { items: this.#closed(items) }),
      ...(properties === undefined ? {} : {
        properties: Object.fromEntries(
          Object.entries(properties).map(([name, one]) => [name, this.#closed(one)]),
        ),
      }),
    };
  }

  #isRecord(schema: Schema): boolean {
    const { properties, allOf = [], anyOf = [] } = this.resolved(schema);
    return properties !== undefined || [...allOf, ...anyOf].some((one) => this.#isRecord(one));
  }
}
