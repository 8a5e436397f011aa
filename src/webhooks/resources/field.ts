import type { JsonObject } from "../../base/exact_json.ts";

type TextType = "text" | "url" | "header" | "secret" | "pem" | "choice" | "id" | "kind" | KeptAsJson;
/** Values that records keep as JSON. */
type KeptAsJson = "filter" | "condition" | "template" | "limit" | "json";
/** People write `milliseconds`, `seconds` and `delay` as durations, and `moment` as a time or a duration before now. */
type NumberType = "integer" | "share" | "milliseconds" | "seconds" | "delay" | "time" | "moment";
/** `kinds` are kinds of events, prefixes and `*`. */
type ListType = "kinds" | "texts";
/** `credentials` have parts that are kept encrypted and never shown. */
type ObjectType = "object" | "verification" | "credentials";

/** The kind of a field's value, which decides on its check, its schema and its input. */
export type FieldType =
  | TextType
  | NumberType
  | ListType
  | ObjectType
  | "flag"
  | "rate"
  | "headers"
  | "descriptors"
  | "record"
  | "records";

/** The units of a field of the type `rate`. */
export const RATE_UNITS = ["second", "minute", "hour", "day"] as const;

/** One field of a resource, of a request or of the query of a list. */
export interface Field {
  readonly type: FieldType;
  /** Sentences for people, with Markdown code; the first one is also the help of the command line. */
  readonly words: string;
  /** Bounds of a number, of the length of a text, or of the number of items. */
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  /** The pattern of a text, and in words what it expects. */
  readonly pattern?: string;
  readonly expected?: string;
  /** Of a record or of the items of a list: its fields, and its name in the OpenAPI document. */
  readonly fields?: Fields;
  readonly of?: string;
  readonly examples?: readonly string[];

  /** When it can be set: only for a new record, or also by a change; never when absent. */
  readonly set?: "new" | "always";
  /** Present if a new record, or the request, must have it. */
  readonly isRequired?: true;
  /** Present if a change may remove it by `null`. */
  readonly isNullable?: true;
  /** Of a new record that does not set it. */
  readonly default?: string | number | boolean | readonly string[];

  /** The answers that have it: `always` when not set, `sometimes` if it may be absent, `once` only by the call that creates it, or `never`. */
  readonly shown?: "always" | "sometimes" | "once" | "never";

  /** The flag of the command line, when it is not the name in words with dashes, and its value, when not that of its type. */
  readonly flag?: string;
  readonly value?: string;
  /** The letter that is another name of the flag. */
  readonly short?: string;
  /** The help of the flag, when it is not the first of the words. */
  readonly help?: string;
  /** The flag that removes it, and its help. */
  readonly clear?: readonly [flag: string, help: string];

  /** The label on the web page, and the hint below its input. */
  readonly label?: string;
  readonly hint?: string;
}

/** Fields by name, in the order in which they are shown. */
export type Fields = Readonly<Record<string, Field>>;

/** A resource of the administration. */
export interface Resource {
  /** Its list in paths, on the command line and in the address of the web page. */
  readonly list: string;
  /** One of them, in words. */
  readonly noun: string;
  /** Several of them, in words, when that is not the name of the list. */
  readonly items?: string;
  readonly fields: Fields;
  /** Parameters that narrow its list, in addition to the times. */
  readonly filters: Fields;
  /** The fields that the command line lists. */
  readonly columns: readonly string[];
}

/** The values of the types as requests are read, and as records keep them. Times are in milliseconds. */
type Values =
  & Readonly<Record<TextType, string>>
  & Readonly<Record<NumberType, number>>
  & Readonly<Record<ListType, readonly string[]>>
  & Readonly<Record<ObjectType, JsonObject>>
  & {
    readonly flag: boolean;
    readonly rate: { readonly unit: RateUnit; readonly requestsPerUnit: number };
    readonly headers: readonly (readonly [name: string, value: string])[];
  };
/** One of `RATE_UNITS`. */
type RateUnit = (typeof RATE_UNITS)[number];

/** The value of a field. */
type ValueOf<F extends Field> = F extends { readonly choices: readonly (infer Choice)[] } ? Choice
  : F["type"] extends keyof Values ? Values[F["type"]]
  : unknown;

type OrNull<F extends Field> = F extends { readonly isNullable: true } ? null : never;

/** The values of a request: required ones are there, `null` removes a value. */
export type Sent<F extends Fields> =
  & { readonly [Name in keyof F as F[Name] extends { isRequired: true } ? Name : never]: ValueOf<F[Name]> }
  & {
    readonly [Name in keyof F as F[Name] extends { isRequired: true } ? never : Name]?:
      | ValueOf<F[Name]>
      | OrNull<F[Name]>
      | undefined;
  };

/** Returns whether answers to other calls than the one that creates a record may have a field. */
export function isShown({ shown }: Field): boolean {
  return shown !== "once" && shown !== "never";
}

/** The fields of a new record. */
type NewFields<F extends Fields> = {
  readonly [Name in keyof F as F[Name] extends { set: string } ? Name : never]: F[Name];
};

/** The fields of a change, all of them optional. */
type ChangeFields<F extends Fields> = {
  readonly [Name in keyof F as F[Name] extends { set: "always" } ? Name : never]: Omit<F[Name], "isRequired">;
};

type KeptApart = "headers" | "verification" | "credentials";

/** The fields of records that can be set, but for those that are kept in another form. */
type Kept<F extends Fields> = {
  readonly [
    Name in keyof F as F[Name] extends { set: string; type: Exclude<FieldType, KeptApart> } ? Name
      : never
  ]: F[Name];
};
type Present = { readonly isRequired: true } | { readonly default: unknown };

/** The values of a record that can be set; absent ones have neither been set nor a default. */
export type Stored<F extends Fields> =
  & { readonly [Name in keyof Kept<F> as F[Name] extends Present ? Name : never]: ValueOf<F[Name]> }
  & {
    readonly [Name in keyof Kept<F> as F[Name] extends Present ? never : Name]?: ValueOf<F[Name]> | undefined;
  };

/** The values that answers show, as records keep them. */
export type Shown<F extends Fields> =
  & { readonly [Name in keyof F as F[Name] extends Rare | Secret ? never : Name]: ValueOf<F[Name]> }
  & { readonly [Name in keyof F as F[Name] extends Rare ? Name : never]?: ValueOf<F[Name]> | undefined };
type Rare = { readonly shown: "sometimes" };
type Secret = { readonly shown: "once" | "never" };

/** Changed values of a record: `undefined` leaves a value as it is. */
export type Edited<F extends Fields> = {
  readonly [Name in keyof Kept<F> as F[Name] extends { set: "always" } ? Name : never]?:
    | ValueOf<F[Name]>
    | OrNull<F[Name]>
    | undefined;
};

/** The fields that a new record may have. */
export function newFields<F extends Fields>(fields: F): NewFields<F> {
  return pick(fields, (field) => field.set !== undefined) as NewFields<F>;
}

/** The fields that a change may have. */
export function changeFields<F extends Fields>(fields: F): ChangeFields<F> {
  const settable = Object.entries(pick(fields, (field) => field.set === "always"));
  const optional = settable.map(([name, { isRequired: _, default: __, ...field }]) => [name, field]);
  return Object.fromEntries(optional);
}

/** The values of a new record: those that were sent, and the defaults of the others. */
export function newValues<F extends Fields>(fields: F, sent: Sent<NewFields<F>>): Stored<F> {
  const given: Readonly<Record<string, unknown>> = sent;
  const kept = Object.entries(newFields(fields) as Fields).map(([name, field]) => {
    return [name, given[name] ?? field.default] as const;
  });
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined)) as Stored<F>;
}

function pick(fields: Fields, isPicked: (field: Field) => boolean): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => isPicked(field)));
}

/** The parameters of every list, in addition to its filters. */
export const LIST_PARAMETERS = {
  since: {
    type: "time",
    words: "Only records created at this time or later.",
    help: "only records from this time on, such as 2026-01-31T12:00:00Z, or 24h for 24 hours ago",
  },
  until: {
    type: "time",
    words: "Only records created before this time.",
    help: "only records before this time, in the same forms",
  },
  limit: {
    type: "integer",
    words: "Maximum number of records to return.",
    min: 1,
    max: 200,
    short: "n",
    help: "maximum number of records on a page, up to 200 (default 50)",
  },
  cursor: {
    type: "text",
    words: "`nextCursor` of the previous page.",
    expected: "the nextCursor of a page of this list",
    value: "CURSOR",
    help: "start of the page, as printed with the previous page",
  },
} as const satisfies Fields;

/** The identifier of a record. */
export const ID = { type: "id", words: "The identifier.", label: "Identifier" } as const satisfies Field;
/** The time of the creation of a record. */
export const CREATED = { type: "time", words: "Creation time.", label: "Created" } as const satisfies Field;
/** The time of the last change of a record. */
export const UPDATED = { type: "time", words: "Time of the last change." } as const satisfies Field;
