/**
 * What a part tells of itself, by the last part of the name under which it is shown, such as
 * `cx_active`. Read whenever somebody looks.
 */
export interface Figures {
  /** Numbers that only grow. */
  readonly counters: Readonly<Record<string, () => number>>;
  readonly gauges: Readonly<Record<string, () => number>>;
}
