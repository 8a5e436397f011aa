/**
 * A text as both databases hold it. PostgreSQL refuses U+0000, and of what SQLite has stored the client reads nothing
 * from there on.
 */
export function storedText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
