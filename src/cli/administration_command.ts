import { type CallFlag, filterFlag } from "./administration_flags.ts";
import type { Command } from "./command.ts";

/** How an answer is printed for people. */
export type Shown =
  /** Rows of these fields, page by page, then the field `problems` of the page and of its records if `hasProblems`. */
  | { readonly as: "list"; readonly columns: readonly string[]; readonly hasProblems?: boolean | undefined }
  /** Every field, and `problems` as in a list; those named in `secrets` are shown only once, false in `good` is a failure, and `next` is the command to follow. */
  | {
    readonly as: "record";
    readonly hasProblems?: boolean | undefined;
    readonly secrets?: readonly string[] | undefined;
    readonly good?: string | undefined;
    /** With placeholders for fields, such as `{id}`; printed only if the record has all of them. */
    readonly next?: string | undefined;
  }
  /** One field alone. */
  | { readonly as: "field"; readonly field: string }
  /** A sentence with placeholders for arguments, such as `{ID}`; `held` for an answer with the field `why`. */
  | { readonly as: "sentence"; readonly text: string; readonly held?: string | undefined };

/** A command that makes one call of the administration. */
export interface AdministrationCommand extends Command {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Behind `/api/v1`, with placeholders for arguments, such as `{ID}`. */
  readonly path: string;
  readonly flags: Readonly<Record<string, CallFlag>>;
  /** Arguments that become fields of the body. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** Whether the body must not be empty. */
  readonly isChange?: boolean | undefined;
  readonly shown: Shown;
}

/** `GET /<group>`: a page of a list. */
export function list(
  group: string,
  what: string,
  filters: Readonly<Record<string, CallFlag>>,
  columns: readonly string[],
): AdministrationCommand {
  return {
    words: `${group} list`,
    args: [],
    doc: `list ${what}, newest first`,
    method: "GET",
    path: `/${group}`,
    flags: {
      ...filters,
      limit: filterFlag("limit", "N", "maximum number of records on a page, up to 200 (default 50)"),
      cursor: filterFlag("cursor", "CURSOR", "start of the page, as printed with the previous page"),
    },
    shown: { as: "list", columns },
  };
}

/** `POST /<group>`, whose argument becomes a field of the body. */
export function create(words: string, doc: string, fields: Readonly<Record<string, string>>) {
  return {
    words,
    args: Object.keys(fields),
    doc,
    method: "POST",
    path: `/${words.split(" ")[0]}`,
    fields,
  } as const;
}

/** `POST /<group>/<ID>/<action>`. */
export function action(words: string, doc: string, shown: Shown): AdministrationCommand {
  const [group, verb] = words.split(" ");
  return { words, args: ["ID"], doc, method: "POST", path: `/${group}/{ID}/${verb}`, flags: {}, shown };
}

/** `GET /<group>/<ID>`. */
export function show(group: string, what: string): AdministrationCommand {
  return {
    words: `${group} show`,
    args: ["ID"],
    doc: `show ${what}`,
    method: "GET",
    path: `/${group}/{ID}`,
    flags: {},
    shown: { as: "record" },
  };
}

/** `DELETE /<group>/<ID>`. */
export function remove(group: string, one: string, doc: string): AdministrationCommand {
  return {
    words: `${group} delete`,
    args: ["ID"],
    doc,
    method: "DELETE",
    path: `/${group}/{ID}`,
    flags: {},
    shown: { as: "sentence", text: `${one} {ID} is deleted` },
  };
}
