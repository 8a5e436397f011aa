/**
 * Adds parameters to the query of a URL, encoded and sorted by key. A query that is already there stays as it
 * is, in front of them, and a fragment stays at the end. Nothing else of the URL is touched or checked.
 *
 * @param baseURL The URL, with or without query and fragment.
 * @param params The parameters by key; without any the URL comes back as it is.
 *
 * @example
 * ```ts
 * import { addQueryParameters } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const url = addQueryParameters("https://api.example.com/items?page=2#top", { sort: "name", limit: "10" });
 * assertEquals(url, "https://api.example.com/items?page=2&limit=10&sort=name#top");
 * ```
 */
export function addQueryParameters(baseURL: string, params: Readonly<Record<string, string>>): string {
  const keys = Object.keys(params).sort();
  if (keys.length === 0) return baseURL;
  const added = new URLSearchParams(keys.map((key) => [key, String(params[key])])).toString();
  const end = baseURL.indexOf("#");
  const url = end === -1 ? baseURL : baseURL.slice(0, end);
  const fragment = end === -1 ? "" : baseURL.slice(end);
  return `${url}${separatorAfter(url)}${added}${fragment}`;
}

function separatorAfter(url: string): string {
  if (!url.includes("?")) return "?";
  return url.endsWith("?") || url.endsWith("&") ? "" : "&";
}
