/** A scalar as it is written. */
export interface YamlScalar {
  readonly kind: "scalar";
  readonly offset: number;
  readonly text: string;
  /** True when it is always text: quoted, in a block or tagged as text. */
  readonly quoted: boolean;
}
/** A list. */
export interface YamlList {
  readonly kind: "list";
  readonly offset: number;
  readonly items: readonly YamlValue[];
}
/** A mapping with text keys and merge keys applied. */
export interface YamlMapping {
  readonly kind: "mapping";
  readonly offset: number;
  readonly entries: ReadonlyMap<string, YamlEntry>;
}
/** An invalid value; the reason is in the log. */
interface YamlBroken {
  readonly kind: "broken";
  readonly offset: number;
}
/** A value; the offset of an aliased value is that of the alias. */
export type YamlValue = YamlScalar | YamlList | YamlMapping | YamlBroken;
/** A key with its value. */
export interface YamlEntry {
  readonly offset: number;
  readonly value: YamlValue;
}
