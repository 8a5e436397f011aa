import { existsSync } from "node:fs";
import { join, relative } from "node:path";

/** A fenced block of a page. */
export interface Block {
  /** The line of its fence, counted from 1. */
  readonly line: number;
  readonly language: string;
  readonly marks: readonly string[];
  /** Without the indentation of the fence. */
  readonly text: string;
}

/** A heading of a page. */
interface Heading {
  readonly line: number;
  readonly level: number;
  readonly text: string;
}

/** A link of a page. */
interface Link {
  readonly line: number;
  readonly target: string;
}

/** A document of the project, taken apart. */
export interface Page {
  /** Path from the root of the project, such as `docs/cache.md`. */
  readonly path: string;
  readonly text: string;
  /** The text with spaces in place of fenced blocks and comments. */
  readonly body: string;
  /** The body with spaces in place of inline code and the targets of links. */
  readonly prose: string;
  /** The texts of its inline code. */
  readonly codes: readonly string[];
  readonly blocks: readonly Block[];
  readonly headings: readonly Heading[];
  /** The anchors of its headings, as GitHub names them, without `#`. */
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly Link[];
}

const ROOT = new URL("../../", import.meta.url).pathname;
const SINGLE_PAGES = [
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "scripts/bench/README.md",
  "src/rest/README.md",
];
const SITE = join(ROOT, "docs/site");
const FENCE = /^( *)(`{3,})(\S*) *([^\n]*)\n(.*?)^ *\2 *$/gms;
const CODE = /(`+)(?!`)([^\n]*?[^`])\1(?!`)/g;
const LINK = /\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)|^ *\[[^\]]+\]: +(\S+)|\b(?:href|src)="([^"]+)"/gm;

/** Every document of the project, sorted by path; a document that does not exist is left out. */
export function documentPages(): Page[] {
  const paths = [...SINGLE_PAGES.filter(isFile), ...markdownBelow(join(ROOT, "docs"))].sort();
  return paths.map((path) => readPage(path, Deno.readTextFileSync(join(ROOT, path))));
}

/** Takes a document apart. */
export function readPage(path: string, text: string): Page {
  const body = text.replaceAll(FENCE, blank).replaceAll(/<!--.*?-->/gs, blank);
  const withoutCode = body.replaceAll(CODE, blank);
  const headings = [...body.matchAll(/^(#{1,6}) +(.+?) *$/gm)].map((match) => {
    const [, marks = "", title = ""] = match;
    return { line: lineAt(text, match.index), level: marks.length, text: title };
  });
  return {
    path,
    text,
    body,
    prose: withoutCode.replaceAll(LINK, (match) => `]${blank(match.slice(1))}`),
    codes: [...body.matchAll(CODE)].map(([, , code = ""]) => code),
    blocks: blocksOf(text),
    headings,
    anchors: anchorsOf(headings.map((heading) => heading.text), withoutCode),
    links: linksOf(withoutCode, text),
  };
}

/** The text of a page with other targets of its links, except those in code. */
export function replaceLinks({ text, body }: Page, replace: (target: string) => string): string {
  let replaced = "";
  let end = 0;
  for (const match of body.replaceAll(CODE, blank).matchAll(LINK)) {
    const [whole, inline, reference, html] = match;
    const target = inline ?? reference ?? html ?? "";
    const start = match.index + whole.lastIndexOf(target);
    replaced += text.slice(end, start) + replace(target);
    end = start + target.length;
  }
  return replaced + text.slice(end);
}

/** The text of the section below a heading, up to the next heading of its level or above. */
export function sectionOf(page: Page, title: string): string {
  const start = page.headings.find((heading) => heading.text === title);
  if (start === undefined) throw new Error(`Cannot read ${page.path}: it has no heading "${title}"`);
  const end = page.headings.find(({ line, level }) => line > start.line && level <= start.level);
  return page.text.split("\n").slice(start.line, end === undefined ? undefined : end.line - 1).join("\n");
}

/** The line of a position in a text, counted from 1. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** The fenced blocks of a text in Markdown. */
function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(FENCE)].map((match) => {
    const [, indent = "", , language = "", marks = "", text = ""] = match;
    return {
      line: lineAt(markdown, match.index),
      language,
      marks: marks.split(" ").filter((mark) => mark !== ""),
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    };
  });
}

/** GitHub's anchors: the second heading of one name has `-1` behind it, and so on. */
function anchorsOf(titles: readonly string[], text: string): Set<string> {
  const anchors = new Set<string>();
  for (const title of titles) {
    const shown = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const name = shown.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "").replaceAll(" ", "-");
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  for (const [, name = ""] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(name);
  return anchors;
}

function linksOf(withoutCode: string, text: string): Link[] {
  return [...withoutCode.matchAll(LINK)].map((match) => {
    const [, inline, reference, html] = match;
    return { line: lineAt(text, match.index), target: inline ?? reference ?? html ?? "" };
  });
}

/** The same text as spaces, with its line breaks. */
function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

function isFile(path: string): boolean {
  return existsSync(join(ROOT, path));
}

function markdownBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = join(folder, name);
    // The site is built from these pages.
    if (isDirectory) return path === SITE ? [] : markdownBelow(path);
    return name.endsWith(".md") ? [relative(ROOT, path)] : [];
  });
}
