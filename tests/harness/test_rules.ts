import { closing, importsOf, lineOf, type Source } from "./source_scan.ts";
import { TOOL_NAMES, toolsFor } from "./tool_register.ts";

/** The longest that a test may wait for time to pass. */
const MAX_WAIT_MS = 100;

/** Servers, and the browser, as a test or a script would start them without the harness. */
const SERVER_START =
  /\b(?:requireTool|toolPath)\("(?:redis-server|valkey-server|memcached|postgres|pgbouncer|envoy|statsd_exporter|prometheus|chromium-headless-shell)"\)/g;

/** The flags of the program, which the compile task needs where there are no tests. */
const SERVE_FLAGS = "scripts/serve_flags.ts";

/** Records that grow or change by themselves while a test runs: logs, metrics, received requests, pages. */
const RECORDS =
  /(?<![\w"])(?:log|lines|stdoutLines|warnings|told|loads|ends|seen|sent|accepted|linesLost|requests|receptions|received|packets|metrics|gauges|metric|stats|health|isVisible|inputValue|innerText|textContent|readDir)\b(?!:)|\bpage\(/g;
/** More characters than an assertion and the constants before it have. */
const MAX_STATEMENTS = 5_000;
/** A wait, from its first word to the bracket of its arguments. */
const WAIT = /(?<![^;{}\s]\s*)await (?:[\w.#]+\.)?(?:until|waitFor|(new Promise|sleep))\(/g;
/** Follows a wait if the next statement other than a constant is an assertion. */
const ASSERTION = /^;\s*(?:const [^;=]+ = [^;]*;\s*)*assert\w+\(/;

/** The rules about tests and scripts, by the sentence that each stands for. */
export const TEST_RULES: Readonly<Record<string, (source: Source) => string[]>> = {
  "no test waits more than 100 ms for time to pass": longWaits,
  "an assertion after a wait reads only the records that the wait names": unorderedReads,
  "scripts import only the harness from tests, and only their own tests import scripts": scriptImports,
  "only the harness starts servers": serverStarts,
  "only tests/deploy needs programs for other tools' files": deployTools,
};

/** A timer whose handle is kept can be cleared: it bounds an event. Any other timer is waited for. */
function longWaits(source: Source): string[] {
  if (!source.path.startsWith("tests/") || source.path.startsWith("tests/soak/")) return [];
  const { code } = source;
  const sleeps = sleepNames(source);
  return [...code.matchAll(/(?<![\w.])([A-Za-z]\w*)\(/g)].flatMap((match) => {
    const [text, name = ""] = match;
    const before = code.slice(Math.max(0, match.index - 20), match.index);
    const args = () => argumentsAt(code, match.index + text.length);
    let wait: string | undefined;
    if (sleeps.has(name)) wait = /(?:\bawait|=>|\breturn)\s*$/.test(before) ? args()[0] : undefined;
    else if (name === "setTimeout") wait = /[=?:]\s*$/.test(before) ? undefined : args()[1];
    else if (name === "until") wait = /\bintervalMs: ([\w.]+)/.exec(args()[2] ?? "")?.[1];
    const ms = wait === undefined ? 0 : millisecondsOf(wait, code);
    return ms > MAX_WAIT_MS ? [`${source.path}:${lineOf(source, match.index)}: ${ms} ms`] : [];
  });
}

/** The names that a file has for `setTimeout` of `node:timers/promises`. */
function sleepNames(source: Source): Set<string> {
  if (!importsOf(source).includes("node:timers/promises")) return new Set();
  const names = source.code.matchAll(/^import \{[^}]*\bsetTimeout(?: as (\w+))?[^}]*\}/gm);
  return new Set([...names].map(([, alias = "setTimeout"]) => alias));
}

/**
 * Nothing orders a record after an event that it is not part of: `eventually` waits for the record itself. After a pause
 * nothing is ordered at all.
 */
function unorderedReads(source: Source): string[] {
  const { code, path } = source;
  if (!path.startsWith("tests/")) return [];
  return [...code.matchAll(WAIT)].flatMap((match) => {
    const begin = match.index + match[0].length - 1;
    const end = closing(code, begin) + 1;
    const [wait, after] = [code.slice(begin, end), code.slice(end, end + MAX_STATEMENTS)];
    const opening = ASSERTION.exec(after)?.[0];
    if (opening === undefined) return [];
    const asserted = code.slice(end, closing(code, end + opening.length - 1));
    const isPause = match[1] === "sleep" || /\bsetTimeout\(\w+, /.test(wait);
    const names = match[1] === undefined
      ? Array.from(asserted.matchAll(RECORDS), ([name]) => name).filter((name) => !wait.includes(name))
      : isPause
      ? ["a pause"]
      : [];
    return [...new Set(names)].map((name) => `${path}:${lineOf(source, match.index)}: ${name}`);
  });
}

/** The arguments of a call, from the place behind its opening bracket. */
function argumentsAt(code: string, start: number): string[] {
  const args = [""];
  for (let at = start, depth = 0; at < code.length; at++) {
    const character = code[at] ?? "";
    if (/[([{]/.test(character)) depth++;
    if (/[)\]}]/.test(character) && --depth < 0) break;
    if (character === "," && depth === 0) args.push("");
    else args[args.length - 1] += character;
  }
  return args.map((arg) => arg.trim());
}

/**
 * The value of a number, a constant of the file or a sum or product of them; 0 for anything else, such as a
 * parameter.
 */
function millisecondsOf(expression: string, code: string): number {
  const valueOf = (factor: string): number => {
    if (/^[\d_.]+$/.test(factor)) return Number(factor.replaceAll("_", ""));
    const [, name, field] = /^(\w+)(?:\.(\w+))?$/.exec(factor) ?? [];
    if (name === undefined) return 0;
    const constant = field === undefined
      ? new RegExp(`\\bconst ${name}(?:: number)? = ([^;{[(]+);`).exec(code)?.[1]
      : new RegExp(`\\bconst ${name} = \\{[^}]*\\b${field}: ([\\d_]+)`).exec(code)?.[1];
    return constant === undefined || constant === expression ? 0 : millisecondsOf(constant.trim(), code);
  };
  const terms = expression.split(" + ").map((term) => term.split(" * ").map(valueOf));
  return terms.reduce((sum, factors) => sum + factors.reduce((product, factor) => product * factor, 1), 0);
}

function scriptImports(source: Source): string[] {
  const { path } = source;
  const isScript = path.startsWith("scripts/");
  const isTestOfScripts = /^tests\/(?:deploy|(?:unit|integration)\/(?:scripts|bench))\//.test(path);
  return importedFiles(source)
    .filter((target) =>
      isScript
        ? target.startsWith("tests/") && !target.startsWith("tests/harness/")
        : path.startsWith("tests/") && target.startsWith("scripts/") && !isTestOfScripts &&
          target !== SERVE_FLAGS
    )
    .map((target) => `${path} imports ${target}`);
}

function serverStarts(source: Source): string[] {
  if (source.path.startsWith("tests/harness/")) return [];
  return [...source.text.matchAll(SERVER_START)]
    .map(({ 0: text, index }) => `${source.path}:${lineOf(source, index)}: ${text}`);
}

function deployTools(source: Source): string[] {
  if (!/^tests\/(?:unit|contract|integration|soak)\//.test(source.path)) return [];
  const names: readonly string[] = TOOL_NAMES.filter((name) => !toolsFor([]).includes(name));
  return source.strings.filter(({ start, value }) =>
    names.includes(value) &&
    /\b(?:needs|requireTool)\([^;]*$/.test(source.code.slice(Math.max(0, start - 200), start))
  ).map(({ start, value }) => `${source.path}:${lineOf(source, start)}: ${value}`);
}

function importedFiles(source: Source): string[] {
  return importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => new URL(specifier, `file:///${source.path}`).pathname.slice(1));
}
