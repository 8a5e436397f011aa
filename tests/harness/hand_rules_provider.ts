import type { LoadReceiver, RulesLoad, RulesProvider } from "../../src/config/provider.ts";
import { readRuleFile } from "../../src/config/rule_file.ts";

/** A provider that loads when it is told to. */
export class HandProvider implements RulesProvider {
  load: LoadReceiver = () => [];

  start(onLoad: LoadReceiver): void {
    this.load = onLoad;
  }

  reload(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A load of these files. */
export function rulesLoad(files: Readonly<Record<string, string>>): RulesLoad {
  const read = Object.entries(files).map(([name, text]) => readRuleFile(name, text));
  return {
    sources: read.flatMap(({ source }) => source === undefined ? [] : [source]),
    problems: read.flatMap(({ problems }) => problems),
    version: "v7",
  };
}
