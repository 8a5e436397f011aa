import { closing, lineOf, type Source } from "./source_scan.ts";

const MAX_MUTABLE_FIELDS = 6;
const QUESTION_WORD = /\/\*\*[\s*]*(What|How|Whether|Where)\b/g;
const BORROWED_OPTIONS =
  /^(?:export\s+)?(?:interface\s+\w+[^{;]*?\bextends\b[^{;]*?|type\s+\w*Options\b[^;]*?)\b(?:Omit|Pick)</gm;
const CLASS = /\bclass\s+([\w$]+)[^{;]*(?=\{)/g;
const FIELD =
  /^[ \t]*((?:(?:private|protected|public|static|override|declare|readonly|accessor)\s+)*)#?[\w$]+[?!]?\s*[:=;]/gm;

/** The rules about habits of writing, by the sentence that each stands for. */
export const HABIT_RULES: Readonly<Record<string, (source: Source) => string[]>> = {
  "an object literal is not spread: the object has a name": (source) =>
    found(source, source.code, /\.\.\.\{ *[\w.]/g, "a spread literal"),
  "an interface of options states its fields, without Omit and Pick": (source) =>
    found(source, source.code, BORROWED_OPTIONS, "Omit or Pick"),
  "a doc comment does not begin with What, How, Whether or Where": (source) =>
    [...source.comments.matchAll(QUESTION_WORD)].map(({ 1: word, index }) =>
      `${source.path}:${lineOf(source, index)}: ${word}`
    ),
  "a class has at most six fields that change": mutableFields,
};

function mutableFields(source: Source): string[] {
  const { code, path } = source;
  return [...code.matchAll(CLASS)].flatMap(({ 0: head, 1: name, index }) => {
    const start = index + head.length;
    const body = withoutNested(code.slice(start + 1, closing(code, start)));
    const fields = [...body.matchAll(FIELD)].filter(([, words = ""]) =>
      !/\b(?:readonly|static)\b/.test(words)
    );
    if (fields.length <= MAX_MUTABLE_FIELDS) return [];
    return [`${path}:${lineOf(source, index)}: ${name} has ${fields.length}`];
  });
}

/** The members of a class without the contents of their brackets. */
function withoutNested(body: string): string {
  let depth = 0;
  let members = "";
  for (const character of body) {
    if (/[)\]}]/.test(character)) depth--;
    members += depth === 0 || character === "\n" ? character : " ";
    if (/[([{]/.test(character)) depth++;
  }
  return members;
}

function found(source: Source, text: string, pattern: RegExp, name: string): string[] {
  return [...text.matchAll(pattern)].map(({ index }) => `${source.path}:${lineOf(source, index)}: ${name}`);
}
