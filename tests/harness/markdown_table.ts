/** A Markdown table. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A number without fraction, its thousands apart. */
export function wholeNumber(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
