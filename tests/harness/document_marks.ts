import type { Block, Page } from "./documents.ts";

/** Languages whose blocks a test runs or reads, each with the marks that say how. */
const MARKS: Readonly<Record<string, RegExp>> = {
  yaml: /^(?:rules|wrong|mapping|workflow|example=\S+)$/,
  console: /^(?:try|webhooks)$/,
  sh: /^(?:on=(?:docker|helm|kubernetes|systemd|network|root|time)|with=postgres|receiver=openssl|kit=node)$/,
  ts: /^(?:rest|receiver=(?:deno|standard))$/,
  js: /^receiver=(?:node|kit)$/,
  python: /^receiver=python$/,
  go: /^receiver=go$/,
};
/** A copy of a file of the repository, or of lines of one; for every language. */
const COPY = /^(?:file|part)=\S+$/;
/** Needs no mark: run, or read, in any case. */
const BARE = ["sh", "json"];
/** Not run. */
const SHOWN = ["text", "http", "mermaid"];

/** The blocks that no test runs and that are not meant only to be shown, each as a line to print. */
export function unmarkedBlocks({ path, blocks }: Page): string[] {
  return blocks.filter((block) => !isMarked(block))
    .map(({ line, language, marks }) => `${path}:${line}: ${[language, ...marks].join(" ")}`);
}

/** The value of a mark such as `file=PATH`. */
export function markValue({ marks }: Block, name: string): string | undefined {
  return marks.find((mark) => mark.startsWith(`${name}=`))?.slice(name.length + 1);
}

function isMarked({ language, marks }: Block): boolean {
  if (SHOWN.includes(language) || (BARE.includes(language) && marks.length === 0)) return true;
  return marks.some((mark) => COPY.test(mark) || MARKS[language]?.test(mark) === true);
}

/** The `file=` and `part=` blocks that are not the same as the file, each as a line to print. */
export function copyProblems(
  { path, blocks }: Page,
  readText: (path: string) => string,
): string[] {
  return blocks.flatMap((block) => {
    const problem = copyProblem(block, readText);
    return problem === undefined ? [] : [`${path}:${block.line}: ${problem}`];
  });
}

function copyProblem(block: Block, readText: (path: string) => string): string | undefined {
  const [whole, part] = [markValue(block, "file"), markValue(block, "part")];
  const name = whole ?? part;
  if (name === undefined) return undefined;
  try {
    const text = readText(name);
    if (whole !== undefined) return block.text === text ? undefined : `not the text of ${name}`;
    return `\n${unindented(text)}\n`.includes(`\n${unindented(block.text)}\n`)
      ? undefined
      : `not lines of ${name}`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return `no file ${name}`;
    throw error;
  }
}

function unindented(text: string): string {
  return text.trimEnd().replaceAll(/^ +/gm, "");
}
