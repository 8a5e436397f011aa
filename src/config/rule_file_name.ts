const RULE_FILE = /\.ya?ml$/;

/** Which names count. */
export interface RuleFileNameOptions {
  /** Files whose name begins with a dot are no rule files. */
  readonly ignoreDotFiles: boolean;
}

/** Whether a file of this name holds rules. */
export function isRuleFileName(name: string, { ignoreDotFiles }: RuleFileNameOptions): boolean {
  return RULE_FILE.test(name) && !(ignoreDotFiles && name.startsWith("."));
}
