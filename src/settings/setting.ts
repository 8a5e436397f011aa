/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns whether a variable has a value: an empty one counts as unset. */
export function isSet(env: Environment, variable: string): boolean {
  return (env[variable] ?? "") !== "";
}

/** The result of a parser: the value, with a warning if there is one, or what was expected, as a noun phrase. */
export type Parsed<T> =
  | { readonly value: T; readonly warning?: string }
  | { readonly expected: string };

/** Reads the text of one environment variable; pure, never called with an empty text by `readSettings`. */
export type Parser<T> = (text: string) => Parsed<T>;

/** The groups of the documentation, in order. */
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
  "Metrics over OTLP",
  "Tracing",
  "Webhooks and workflows",
  "Administration",
] as const;

/** The name of a group. */
export type SettingGroup = typeof GROUPS[number];

/** One environment variable, or a family of them when its name holds a `<PLACEHOLDER>`. */
export interface Setting {
  readonly parse: Parser<unknown>;
  /** The text used when the variable is not set; absent for an optional setting. */
  readonly default?: string;
  /** The behaviour without a value, for the documentation of an optional setting. */
  readonly whenUnset?: string;
  /** One sentence: what it does, its unit, what is allowed. */
  readonly doc: string;
  readonly group: SettingGroup;
  /** The value must never be shown: not in errors, not in warnings. */
  readonly secret?: true;
  /** The secrets in the value are credentials in front of a host: the rest may be shown to operators. */
  readonly isAddress?: true;
  /** Variables of envoyproxy/ratelimit with this value, read where the setting itself is not given. */
  readonly aliases?: readonly string[];
  /** Why the variable is accepted but has no effect. */
  readonly deprecated?: string;
}

/** The value of a setting; undefined too where there is no default. */
export type SettingValue<S> = S extends { readonly parse: Parser<infer T> }
  ? S extends { readonly default: string } ? T : T | undefined
  : never;

/** The values of a family by the text that fills the placeholder. */
export type FamilyValue<S> = S extends { readonly parse: Parser<infer T> } ? ReadonlyMap<string, T> : never;
