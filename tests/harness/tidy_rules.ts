import { relativeImports } from "./import_circles.ts";
import { functionsOf, importsOf, lineOf, type Source } from "./source_scan.ts";

/** Finds what breaks one rule in one file; each finding is a line to print. */
type TidyRule = (source: Source) => string[];

const MAX_FILE_LINES = 400;
const MAX_FUNCTION_LINES = 70;
/** More characters than the documentation of an export has. */
const MOST_ABOVE = 5_000;
/** Made by a program and never read by people. */
const GENERATED = ["src/wire/descriptors.ts"];

/**
 * Who may import whom: for each folder of `src` the files and folders of others that it may know. A folder may always
 * import from itself, and from what is below it where that has no entry of its own.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "base": [],
  "threads": ["base/"],
  "net": ["threads/", "base/"],
  "net/outbound": ["net/", "base/"],
  "rest": [],
  "wire": [],
  "yaml": ["base/"],
  "ratelimit": ["base/"],
  "ratelimit/algorithms": ["base/"],
  "ratelimit/rules": [
    "ratelimit/algorithms/",
    "ratelimit/decision.ts",
    "ratelimit/errors.ts",
    "ratelimit/units.ts",
    "ratelimit/request.ts",
    "ratelimit/rule_events.ts",
    "ratelimit/rule_source.ts",
    "ratelimit/stats_sink.ts",
    "base/",
  ],
  "ratelimit/decision": [
    "ratelimit/rules/",
    "ratelimit/algorithms/",
    "ratelimit/decision.ts",
    "ratelimit/errors.ts",
    "ratelimit/units.ts",
    "ratelimit/request.ts",
    "ratelimit/rule_events.ts",
    "ratelimit/rule_source.ts",
    "ratelimit/stats_sink.ts",
    "base/",
  ],
  "ratelimit/forecast": ["ratelimit/", "base/"],
  "quota": ["ratelimit/", "base/"],
  "settings": ["base/"],
  "stats": ["ratelimit/stats_sink.ts", "net/", "base/"],
  "telemetry": ["grpc/client/", "grpc/grpc_service.ts", "ratelimit/", "wire/", "threads/", "base/"],
  "config": [
    "grpc/client/",
    "grpc/grpc_service.ts",
    "ratelimit/",
    "wire/",
    "yaml/",
    "net/client_tls.ts",
    "threads/",
    "base/",
  ],
  "cache": ["ratelimit/", "net/", "base/"],
  "cache/kv": ["cache/", "quota/", "ratelimit/", "net/", "base/"],
  "cache/mc": ["cache/", "ratelimit/", "net/", "base/"],
  "grpc": ["quota/", "ratelimit/", "wire/", "net/", "threads/", "base/"],
  "grpc/client": ["grpc/native/", "grpc/grpc_service.ts", "net/", "base/"],
  "http/server": ["ratelimit/errors.ts", "webhooks/api/", "wire/text.ts", "net/", "base/"],
  "http/routes": [
    "http/server/",
    "http/openapi/",
    "quota/quota_view.ts",
    "ratelimit/",
    "webhooks/api/",
    "telemetry/",
    "wire/text.ts",
    "base/",
  ],
  "http/openapi": ["http/server/", "ratelimit/", "webhooks/api/", "base/"],
  "ui": ["webhooks/resources/", "base/"],
  "load": ["grpc/client/", "grpc/native/", "wire/rls.ts", "base/"],
  "webhooks": ["webhooks/model/signature.ts"],
  "webhooks/resources": ["base/"],
  "webhooks/model": ["webhooks/resources/", "ratelimit/algorithms/bucket.ts", "base/"],
  "webhooks/store": ["webhooks/model/", "webhooks/resources/", "base/"],
  "webhooks/store/sqlite": ["webhooks/store/", "base/"],
  "webhooks/store/postgres": ["webhooks/store/", "webhooks/model/", "net/", "base/"],
  "webhooks/store/maintenance": [
    "webhooks/store/",
    "webhooks/model/",
    "webhooks/resources/",
    "base/",
  ],
  "webhooks/secrets": ["webhooks/model/", "base/"],
  "webhooks/deliveries": [
    "net/",
    "threads/",
    "webhooks/store/",
    "webhooks/model/",
    "webhooks/resources/",
    "base/",
  ],
  "webhooks/workflows": [
    "net/",
    "threads/",
    "webhooks/store/",
    "webhooks/model/",
    "rest/mod.ts",
    "yaml/",
    "base/",
  ],
  "webhooks/api": [
    "net/pem.ts",
    "rest/mod.ts",
    "webhooks/deliveries/",
    "webhooks/store/",
    "webhooks/model/",
    "webhooks/resources/",
    "base/",
  ],
  "webhooks/service": ["webhooks/", "net/", "threads/", "base/"],
  "cli": [
    "grpc/client/",
    "grpc/grpc_service.ts",
    "serve/decisions.ts",
    "cache/memory_cache.ts",
    "config/rule_files.ts",
    "http/routes/rate_limit_json.ts",
    "http/server/json_reader.ts",
    "net/",
    "load/",
    "quota/explain_bucket.ts",
    "ratelimit/",
    "rest/mod.ts",
    "settings/",
    "webhooks/receiver.ts",
    "webhooks/resources/",
    "webhooks/secrets/",
    "webhooks/store/maintenance/",
    "webhooks/workflows/folder_reading.ts",
    "wire/",
    "yaml/",
    "base/",
  ],
  "serve": [""],
};
/** The folders of `src` with rules of their own, the longest path first: a file belongs to the first that it is in. */
const FOLDERS = Object.keys(MAY_IMPORT).sort((a, b) => b.length - a.length);
/** The adapters of the store's port: only code that opens a store imports them. */
const ADAPTERS = /^webhooks\/store\/(?:sqlite|postgres|maintenance)\//;
const KNOWS_ADAPTERS = ["webhooks/service", "webhooks/store/maintenance", "cli", "serve"];

/** Third-party packages, each with the paths that may import it. */
const PACKAGES: Readonly<Record<string, RegExp>> = {
  "ipaddr.js": /^src\/net\/outbound\/address_ranges\.ts$/,
  "@grpc/grpc-js": /^(?:src\/grpc\/grpc_js_engine\.ts$|tests\/|scripts\/bench\/)/,
  "pg": /^(?:src\/webhooks\/store\/postgres\/|tests\/|scripts\/bench\/postgres_)/,
  "@seriousme/openapi-schema-validator": /^tests\/integration\/http\//,
  "@cyclonedx/cyclonedx-library": /^tests\/unit\/scripts\//,
  "ajv": /^tests\/(?:harness\/openapi_schema\.ts$|unit\/scripts\/)/,
  "ajv-formats": /^tests\/unit\/scripts\//,
  "ajv-formats-draft2019": /^tests\/unit\/scripts\//,
  "openapi-fetch": /^tests\/integration\/http\//,
  "openapi-typescript": /^tests\/integration\/http\//,
  "axe-core": /^tests\/integration\/ui\/page_axe\.ts$/,
  "playwright-core": /^tests\/(?:harness|integration\/ui)\//,
  "yaml": /^(?:src\/yaml\/|tests\/)/,
  "protobufjs": /^(?:tests|scripts)\//,
  "protobufjs/ext/descriptor/index.js": /^tests\/unit\/wire\//,
  "typescript": /^(?:scripts\/release|tests\/deploy)\/npm_packages/,
  "standardwebhooks": /^tests\/unit\/webhooks\//,
  "@opentelemetry/api": /^(?:src\/telemetry\/(?:tracing|otlp)|tests\/)/,
  "@opentelemetry/otlp-exporter-base": /^src\/telemetry\/otlp_(?:delegate|grpc_transport|worker)\.ts$/,
  "@opentelemetry/otlp-exporter-base/node-http": /^src\/telemetry\/otlp_delegate\.ts$/,
  "@opentelemetry/otlp-transformer": /^(?:src\/telemetry\/otlp_(?:delegate|worker)\.ts$|tests\/)/,
  "@opentelemetry/resources": /^(?:src\/telemetry\/(?:tracing|otlp)|tests\/)/,
  "@opentelemetry/sdk-metrics": /^src\/telemetry\/otlp_metrics/,
  "@opentelemetry/sdk-trace": /^(?:src\/telemetry\/tracing|tests\/)/,
  "#assert": /^tests\//,
  "@weir/rest": /^tests\//,
  "@weir/rest/testing": /^tests\//,
};

/** Paths of packages of this project, and those that a package exports as its own parts. */
const PUBLIC_PATHS = [
  "@weir/rest",
  "@weir/rest/testing",
  "@opentelemetry/otlp-exporter-base/node-http",
  "protobufjs/ext/descriptor/index.js",
];

/** Words that the core may not use: it has no clock, no randomness and no I/O. */
const IMPURE = ["Date.now", "Math.random", "setTimeout", "setInterval", "fetch(", "Deno.", "console."];
const PURE = /^src\/(?:(?:ratelimit|quota|webhooks\/model)\/|webhooks\/deliveries\/endpoint_shares\.ts$)/;

/** Words of no meaning, for files and exports alike. */
const EMPTY_WORDS = ["manager", "helper", "util", "utils", "impl", "processor", "data", "info"];

/** Words and phrases that a reader has to decode, in comments, texts and documents; the style page has the words instead. */
export const PRIVATE_WORDS = new RegExp(
  [
    "octets?(?!-stream)",
    "would be right",
    "nobody",
    "whoever",
    "that which",
    "what could not be",
    "(?:is|are|was|were|be) told",
    "told of",
    "taken up",
    "g[ia]ves? way",
    "stands? (?:in|before)",
    "figures?",
    "prolong(?:s|ed)?",
    "(?:is|are|was|were|be) away",
    "is well",
    "within a time",
    "the one before",
    "at once",
    "beside",
    "of (?:its|their|his|your) own",
    "wants",
    "wanted",
  ].map((words) => `\\b${words}\\b`).join("|").replaceAll(" ", "[ \\n/*]+"),
  "gi",
);
/** The one file that has to contain them. */
const WORDS_FILE = "tests/harness/tidy_rules.ts";
/** The same for the words of a name. */
const PRIVATE_NAMES = [
  "octets",
  "figure",
  "figures",
  "gathering",
  "dialling",
  "trail",
  "voids",
  "teach",
];

/** The rules that one file alone can break, by the sentence that each stands for. */
export const TIDY_RULES: Readonly<Record<string, TidyRule>> = {
  "a folder of src imports only what it may know": foldersImported,
  "a third-party package is imported only where its job is": packagesImported,
  "a third-party package is imported by its name, without a path into it": deepImports,
  "no member of a foreign object begins with an underscore": (source) =>
    /^(?:src|scripts)\//.test(source.path)
      ? found(source, /(?<!\bthis)\??\._\w+/g).concat(foreignKeys(source))
      : [],
  "only tests and the start script import main.ts": mainImported,
  "the pure parts use no clock, no chance and no I/O": impureWords,
  "only one file touches the console and the standard streams": consoleUsed,
  "a file has at most 400 lines": fileTooLong,
  "a function has at most 70 lines": functionsTooLong,
  "a file has a name in snake_case": nameNotSnake,
  "no file and no export has a name without meaning": emptyNames,
  "nothing is exported as default": (source) => found(source, /\bexport\s+default\b|\bas\s+default\b/g),
  "nothing is an enum": (source) => found(source, /^(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w/gm),
  "nothing is left to be done": workLeft,
  "texts use the words of the field": privateWords,
  "an export has a sentence of documentation": exportsWithoutSentence,
};

function foldersImported(source: Source): string[] {
  const from = folderOf(source.path);
  if (from === undefined) return [];
  const allowed = MAY_IMPORT[from] ?? [];
  return relativeImports(source).filter((target) => {
    if (!target.startsWith("src/")) return true;
    if (folderOf(target) === from) return false;
    const inside = target.slice("src/".length);
    if (ADAPTERS.test(inside) && !KNOWS_ADAPTERS.includes(from)) return true;
    return !allowed.some((start) => inside.startsWith(start));
  }).map((target) => `${source.path} imports ${target}`);
}

/** The folder of `src` with rules of its own that a file is in; absent for everything else. */
function folderOf(path: string): string | undefined {
  return FOLDERS.find((folder) => path.startsWith(`src/${folder}/`));
}

function packagesImported(source: Source): string[] {
  const packages = importsOf(source).filter((specifier) => !/^(?:\.|node:)/.test(specifier));
  return packages
    .filter((name) => !(Object.hasOwn(PACKAGES, name) && PACKAGES[name]?.test(source.path)))
    .map((name) => `${source.path} imports ${name}`);
}

function deepImports(source: Source): string[] {
  return importsOf(source)
    .filter((name) => /^(?:npm:)?(?:@[^/]+\/)?[\w.-]+\/./.test(name) && !/^(?:\.|node:|https?:)/.test(name))
    .filter((name) => !PUBLIC_PATHS.includes(name))
    .map((name) => `${source.path} imports ${name}`);
}

/** Members by their names in quotes, such as `socket["_handle"]` and `"_parent" in socket`. */
function foreignKeys(source: Source): string[] {
  return source.strings
    .filter(({ start, value }) =>
      /^_\w/.test(value) &&
      (/[\w)\]]\[$/.test(source.code.slice(0, start).slice(-2)) ||
        /^\s*in\b/.test(source.code.slice(start + value.length + 2)))
    )
    .map(({ start, value }) => `${source.path}:${lineOf(source, start)}: ${value}`);
}

function mainImported(source: Source): string[] {
  if (source.path.startsWith("tests/") || source.path === "scripts/start.ts") return [];
  return relativeImports(source).filter((target) => target === "main.ts").map(() =>
    `${source.path} imports main.ts`
  );
}

function impureWords(source: Source): string[] {
  if (!PURE.test(source.path)) return [];
  return IMPURE.flatMap((word) => found(source, new RegExp(`(?<![\\w.])${RegExp.escape(word)}`, "g")));
}

function consoleUsed(source: Source): string[] {
  if (source.path === "src/base/standard_streams.ts" || !/^(?:src\/|main\.ts$)/.test(source.path)) return [];
  return found(source, /\bconsole\b|\bDeno\.std(?:out|err)\b/g);
}

function fileTooLong(source: Source): string[] {
  const lines = source.text.trimEnd().split("\n").length;
  if (lines <= MAX_FILE_LINES || GENERATED.includes(source.path)) return [];
  return [`${source.path} has ${lines} lines`];
}

function functionsTooLong(source: Source): string[] {
  return functionsOf(source)
    .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
    .map(({ line, lines }) => `${source.path}:${line} has ${lines} lines`);
}

function nameNotSnake(source: Source): string[] {
  const ok = source.path.split("/").every((name) => /^[a-z0-9]+(?:_[a-z0-9]+)*(?:\.ts)?$/.test(name));
  return ok ? [] : [source.path];
}

function emptyNames(source: Source): string[] {
  const exported = [...source.code.matchAll(/^export\s+(?:[a-z]+\s+)*([\w$]+)/gm)].map(([, name = ""]) =>
    name
  );
  const file = source.path.split("/").at(-1)?.replace(".ts", "") ?? "";
  return [file, ...exported]
    .filter((name) => wordsOf(name).some((word) => EMPTY_WORDS.includes(word)))
    .map((name) => `${source.path} has the name ${name}`);
}

function wordsOf(name: string): string[] {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase().split("_");
}

function workLeft(source: Source): string[] {
  const words = ["TO" + "DO", "FIX" + "ME"];
  if (!words.some((word) => source.text.includes(word))) return [];
  const mark = new RegExp(`\\b(?:${words.join("|")})\\b`, "g");
  return [...places(source, source.comments, mark), ...places(source, source.code, mark)];
}

function privateWords(source: Source): string[] {
  if (source.path === WORDS_FILE || GENERATED.includes(source.path)) return [];
  const isText = (index: number, length: number) => source.code.slice(index, index + length).trim() === "";
  const texts = [...source.text.matchAll(PRIVATE_WORDS)]
    .filter(({ 0: match, index }) => isText(index, match.length))
    .map(({ 0: match, index }) => `${source.path}:${lineOf(source, index)}: ${match}`);
  const names = [...source.code.matchAll(/(?:const|let|function|class|interface|type|readonly)\s+([\w$]+)/g)]
    .filter(({ 1: name = "" }) => wordsOf(name).some((word) => PRIVATE_NAMES.includes(word)))
    .map(({ 1: name, index }) => `${source.path}:${lineOf(source, index)}: ${name}`);
  return [...texts, ...names];
}

/** A list such as `export { a }` documents nothing: what it names has its sentence where it is declared. */
function exportsWithoutSentence(source: Source): string[] {
  return [...source.code.matchAll(/^export\s+(?!\{|\*|type\s*\{)/gm)]
    .filter(({ index }) => !hasSentence(source.text.slice(Math.max(0, index - MOST_ABOVE), index)))
    .map(({ index }) => `${source.path}:${lineOf(source, index)}`);
}

/** Returns whether a text ends with a comment of documentation that has words in it. */
function hasSentence(above: string): boolean {
  const text = above.replace(/(?:\s*\/\/ deno-[^\n]*)*\s*$/, "");
  const comment = text.slice(text.lastIndexOf("/**"));
  return comment.startsWith("/**") && comment.indexOf("*/", 3) === comment.length - 2 && /\w/.test(comment);
}

/** Every place in the code of a file where a pattern matches. */
function found(source: Source, pattern: RegExp): string[] {
  return places(source, source.code, pattern);
}

function places(source: Source, text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(({ 0: match, index }) => {
    return `${source.path}:${lineOf(source, index)}: ${match.trim()}`;
  });
}
