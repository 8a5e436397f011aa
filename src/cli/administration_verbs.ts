import {
  changeFields,
  type Fields,
  LIST_PARAMETERS,
  newFields,
  type Resource,
} from "../webhooks/resources/field.ts";
import { booleanFlag, type CallFlags, clearingFlags, flagsOf } from "./administration_flags.ts";
import type { Command } from "./command.ts";

/** The form in which an answer is printed for people. */
type Shown =
  /** Rows of these fields, page by page, then the field `problems` of the page and of its records if `hasProblems`. */
  | { readonly as: "list"; readonly columns: readonly string[]; readonly hasProblems?: boolean | undefined }
  /** Every field, and `problems` as in a list; those named in `secrets` are shown only once, false in `good` is a failure, and `next` is the command to follow. */
  | {
    readonly as: "record";
    /** The field with the identifier that the answer is about, if any. */
    readonly id?: string | undefined;
    readonly columns?: FixedColumns | undefined;
    readonly hasProblems?: boolean | undefined;
    readonly secrets?: readonly string[] | undefined;
    readonly good?: string | undefined;
    /** With placeholders for fields, such as `{id}`; printed only if the record has all of them. */
    readonly next?: string | undefined;
  }
  /** One field alone, or every field of an answer without it. */
  | { readonly as: "field"; readonly field: string; readonly columns?: FixedColumns | undefined }
  /** A sentence with placeholders for arguments, such as `{ID}`; `held` for an answer with the field `why`. */
  | { readonly as: "sentence"; readonly text: string; readonly held?: string | undefined };

/** The order of columns of lists of records, by the field that they are in. */
type FixedColumns = Readonly<Record<string, readonly string[]>>;

/** The field with the identifiers of an answer; undefined for an answer without any. */
export function idOf(shown: Shown): string | undefined {
  if (shown.as === "list") return "id";
  return shown.as === "record" ? shown.id : undefined;
}

/** The columns of the lists of records that records of these fields have. */
function columnsOf(fields: Fields): FixedColumns {
  const lists = Object.entries(fields).filter(([, { type }]) => type === "records");
  return Object.fromEntries(lists.map(([name, { fields = {} }]) => [name, Object.keys(fields)]));
}

/** A command that makes one call of the administration. */
export interface AdministrationCommand extends Command {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Behind `/api/v1`, with placeholders for arguments, such as `{ID}`. */
  readonly path: string;
  readonly flags: CallFlags;
  /** Arguments that become fields of the body. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** Asked on a terminal before the call, without `Continue?`. */
  readonly question?: string | undefined;
  /** True if the body must not be empty. */
  readonly isChange?: boolean | undefined;
  readonly shown: Shown;
}

const DISABLED = { disabled: booleanFlag("enabled", "create it disabled", false) };
const SWITCHES = {
  enable: booleanFlag("enabled", "enable it"),
  disable: booleanFlag("enabled", "disable it", false),
};
/** The flags of the pages of a list. */
export const PAGE_FLAGS = flagsOf({ limit: LIST_PARAMETERS.limit, cursor: LIST_PARAMETERS.cursor }, "query");

/** `GET /<list>`: a page of a list. */
export function list({ list, filters, columns }: Resource): AdministrationCommand {
  return {
    words: `${list} list`,
    args: [],
    doc: `list ${list.replace("-", " ")}, newest first`,
    method: "GET",
    path: `/${list}`,
    flags: flagsOf({ ...filters, ...LIST_PARAMETERS }, "query"),
    shown: { as: "list", columns },
  };
}

/** `POST /<list>`: a new record, whose required fields in `args` are arguments. */
export function create(
  { list, fields }: Resource,
  verb: string,
  { args, doc }: { readonly args: readonly string[]; readonly doc: string },
): AdministrationCommand {
  const settable: Fields = newFields(fields);
  const flagged = Object.entries(settable).filter(([name]) => !args.includes(name) && name !== "enabled");
  return {
    words: `${list} ${verb}`,
    args: args.map((name) => name.toUpperCase()),
    doc,
    method: "POST",
    path: `/${list}`,
    fields: Object.fromEntries(args.map((name) => [name.toUpperCase(), name])),
    flags: { ...flagsOf(Object.fromEntries(flagged)), ...("enabled" in settable ? DISABLED : {}) },
    shown: {
      as: "record",
      id: "id",
      columns: columnsOf(fields),
      secrets: Object.keys(fields).filter((name) => fields[name]?.shown === "once"),
    },
  };
}

/** `PATCH /<list>/<ID>`. */
export function change({ list, noun, fields }: Resource, next?: string): AdministrationCommand {
  const { enabled: _, ...flagged }: Fields = changeFields(fields);
  return {
    words: `${list} edit`,
    args: ["ID"],
    doc: `change ${articleOf(noun)} ${noun}`,
    method: "PATCH",
    path: `/${list}/{ID}`,
    isChange: true,
    flags: { ...flagsOf(flagged), ...clearingFlags(flagged), ...SWITCHES },
    shown: { as: "record", id: "id", columns: columnsOf(fields), next },
  };
}

/** `POST /<list>/<ID>/<verb>`, with fields of the body as flags. */
export function action(
  { list }: Resource,
  verb: string,
  { doc, shown, fields = {} }: { readonly doc: string; readonly shown: Shown; readonly fields?: Fields },
): AdministrationCommand {
  const path = `/${list}/{ID}/${verb}`;
  return { words: `${list} ${verb}`, args: ["ID"], doc, method: "POST", path, flags: flagsOf(fields), shown };
}

/** `GET /<list>/<ID>`; `more` describes the further parts of the record. */
export function show({ list, noun, fields }: Resource, more = ""): AdministrationCommand {
  return {
    words: `${list} show`,
    args: ["ID"],
    doc: `show ${articleOf(noun)} ${noun}${more}`,
    method: "GET",
    path: `/${list}/{ID}`,
    flags: {},
    shown: { as: "record", id: "id", columns: columnsOf(fields) },
  };
}

/** `DELETE /<list>/<ID>`. */
export function remove({ list, noun }: Resource, more = ""): AdministrationCommand {
  return {
    words: `${list} delete`,
    args: ["ID"],
    doc: `delete ${articleOf(noun)} ${noun}${more}`,
    method: "DELETE",
    path: `/${list}/{ID}`,
    flags: {},
    question: `This deletes ${noun} {ID}${more}`,
    shown: { as: "sentence", text: `${noun} {ID} is deleted` },
  };
}

function articleOf(noun: string): string {
  return /^[aeiou]/.test(noun) ? "an" : "a";
}
