/** A text, a number, a flag or nothing, as written. */
export interface YamlScalar {
  readonly kind: "scalar";
  readonly offset: number;
  readonly text: string;
  /** It stands in quotes or in a block, or is tagged as text: it is text, whatever it looks like. */
  readonly quoted: boolean;
}
/** A list. */
export interface YamlList {
  readonly kind: "list";
  readonly offset: number;
  readonly items: readonly YamlValue[];
}
/** A mapping whose keys are texts; merge keys are already applied. */
export interface YamlMapping {
  readonly kind: "mapping";
  readonly offset: number;
  readonly entries: ReadonlyMap<string, YamlEntry>;
}
/** A value that could not be had; why is in the log. */
export interface YamlBroken {
  readonly kind: "broken";
  readonly offset: number;
}
/** One value of a file. Its offset is where a person has to look: for an aliased value, the use. */
export type YamlValue = YamlScalar | YamlList | YamlMapping | YamlBroken;
/** One key of a mapping with its value. */
export interface YamlEntry {
  readonly offset: number;
  readonly value: YamlValue;
}
