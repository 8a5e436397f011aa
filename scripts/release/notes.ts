import { CompileError } from "../compile/failure.ts";

const HEADING = /^## /m;
/** A link of Markdown to another page of the project. */
const RELATIVE_LINK = /\]\((?!https?:|#)([^)\s]+)\)/g;
/** A link to a heading of the changelog. */
const OWN_LINK = /\]\((#[^)\s]+)\)/g;

/**
 * The section of a version in the changelog, without its heading. Links lead to the sources at `url`, such as
 * `https://HOST/REPOSITORY/blob/v0.2.0`, where that is given. Throws `CompileError` when the version has no section.
 */
export function releaseNotes(
  changelog: string,
  { version, url }: { readonly version: string; readonly url: string | undefined },
): string {
  const sections = changelog.split(HEADING).slice(1);
  const [heading = "", ...lines] = sections.find((text) => isOf(text, version))?.split("\n") ?? [];
  const text = lines.join("\n").trim();
  if (heading === "") {
    throw new CompileError(
      `Cannot release ${version}: CHANGELOG.md has no section "## ${version} - YYYY-MM-DD"; move what is in ` +
        `"Unreleased" there, or set the version in deno.json`,
    );
  }
  if (text === "") throw new CompileError(`Cannot release ${version}: its section in CHANGELOG.md is empty`);
  if (url === undefined) return `${text}\n`;
  const base = url.replace(/\/+$/, "");
  const linked = text.replace(RELATIVE_LINK, (_, path) => `](${base}/${path})`);
  return `${linked.replace(OWN_LINK, (_, anchor) => `](${base}/CHANGELOG.md${anchor})`)}\n`;
}

function isOf(section: string, version: string): boolean {
  const [heading = ""] = section.split("\n", 1);
  return heading === version || heading.startsWith(`${version} - `);
}
