/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a parser made of a text: the value, or what would have been right, as a noun phrase. */
export type Parsed<T> = { readonly value: T } | { readonly wanted: string };

/** Reads the text of one environment variable; pure, never called with an empty text by `readSettings`. */
export type Parser<T> = (text: string) => Parsed<T>;

/** Where a setting stands in the documentation, in this order. */
export const GROUPS = [
  "Process",
  "HTTP and debug ports",
  "gRPC",
  "Rules",
  "Configuration server",
  "Decisions",
  "Cache",
  "Key-value cache",
  "Per-second cache",
  "Memcached-style cache",
  "Statistics",
  "Pull metrics",
  "Tracing",
  "Webhooks and workflows",
  "Administration",
] as const;

/** The name of a group. */
export type SettingGroup = typeof GROUPS[number];

/** One environment variable, or a family of them when its name holds a `<PLACEHOLDER>`. */
export interface Setting {
  readonly parse: Parser<unknown>;
  /** The text that stands in when the variable is not set; absent for an optional setting. */
  readonly default?: string;
  /** What holds without a value, for the documentation of an optional setting. */
  readonly whenUnset?: string;
  /** One sentence: what it does, its unit, what is allowed. */
  readonly doc: string;
  readonly group: SettingGroup;
  /** The value must never be shown: not in errors, not in warnings. */
  readonly secret?: true;
  /** Set for a variable that is accepted and does nothing for good; says why. */
  readonly deprecated?: string;
}

/** Settings by the name of their environment variable. */
export type SettingTable = Readonly<Record<string, Setting>>;

/** What an entry's parser makes; undefined too where there is no default. */
export type SettingValue<S> = S extends { readonly parse: Parser<infer T> }
  ? S extends { readonly default: string } ? T : T | undefined
  : never;

/** What a family of variables makes: the value for each text that filled the placeholder. */
export type FamilyValue<S> = S extends { readonly parse: Parser<infer T> } ? ReadonlyMap<string, T> : never;
