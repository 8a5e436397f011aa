/** The paths that the repository may contain; everything else belongs in `.gitignore`. */
const ALLOWED: readonly RegExp[] = [
  /^(?:\.gitignore|(?:CHANGELOG|CONTRIBUTING|README|SECURITY)\.md|LICENSE|deno\.(?:json|lock)|main\.ts)$/,
  /^\.ci\/(?:run|smoke)$/,
  /^\.github\/(?:(?:workflows|ISSUE_TEMPLATE)\/\w+\.yml|pull_request_template\.md)$/,
  /^config\/[\w/@-]+\.(?:conf|env|json|service|sh|yaml)$/,
  /^config\/deploy\/Dockerfile(?:\.dockerignore)?$/,
  /^config\/deploy\/helm\/(?:values\.schema\.json|templates\/\w+\.(?:tpl|txt))$/,
  /^docs\/(?:[\w/-]+\.(?:md|png|svg)|site\/(?:package(?:-lock)?\.json|\.vitepress\/config\.ts))$/,
  /^proto\/[\w/]+\.proto$/,
  /^scripts\/(?:weir|[\w/]+\.ts|bench\/README\.md|bench\/results\/\w+\.(?:json|svg))$/,
  /^src\/(?:[\w/]+\.(?:md|ts)|(?:rest|ui\/page)\/deno\.json|ui\/page\/\w+\.(?:css|html))$/,
  /^tests\/(?:[\w/]+\.ts|harness\/tidy_exceptions\.json)$/,
  /^tests\/testdata\/[\w./-]+\.(?:db|go|json|mod|proto|sql|sum)$/,
];

/** The paths, of those that git does not ignore, which the repository may not contain. */
export function strayFiles(paths: readonly string[], gitignore: string): string[] {
  const ignored = gitignore.split("\n").filter((line) => line !== "").map(ignoredPaths);
  return paths.filter((path) =>
    !ignored.some((pattern) => pattern.test(path)) && !ALLOWED.some((pattern) => pattern.test(path))
  );
}

function ignoredPaths(line: string): RegExp {
  const path = line.replace(/^\//, "").split("*").map(RegExp.escape).join("[^/]*");
  return new RegExp(`${line.startsWith("/") ? "^" : "(?:^|/)"}${path}${line.endsWith("/") ? "" : "$"}`);
}
