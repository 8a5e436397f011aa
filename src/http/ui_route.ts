import { createHash } from "node:crypto";
import type { DebugRoute } from "./debug.ts";
import type { Call } from "./router.ts";

/** A file as it is answered. */
interface ServedFile {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

const PREFIX = "/ui/";
const START = "index.html";
const METHODS = ["GET", "HEAD"] as const;
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  ts: "text/javascript; charset=utf-8",
};
/** The page runs only what comes from here, and makes no markup of texts. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const HEADERS = {
  // Asked for each time, so that the page is always that of the program; what has not changed is not sent.
  "cache-control": "no-cache",
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/**
 * The web page of the debug port at `/ui`, and its files beneath. Both are open without a token: they are the same for
 * every service, and show nothing of it. `read` returns the text of a file, or nothing for an unknown name.
 */
export function uiRoutes(read: (name: string) => Promise<string | undefined>): DebugRoute[] {
  const files = new Map<string, ServedFile>();
  const fileOf = async (name: string): Promise<ServedFile | undefined> => {
    const known = files.get(name);
    if (known !== undefined) return known;
    const text = await read(name);
    if (text === undefined) return undefined;
    const file = servedFile(name, text);
    files.set(name, file);
    return file;
  };
  const route = (path: string, help: string): DebugRoute => ({
    path,
    methods: METHODS,
    help,
    open: true,
    handle: (call) => answer(call, fileOf),
  });
  return [
    route("/ui", "this service as a web page"),
    route(`${PREFIX}*`, "what the web page is made of"),
  ];
}

async function answer(
  call: Call,
  fileOf: (name: string) => Promise<ServedFile | undefined>,
): Promise<Response> {
  const name = call.url.pathname.slice(PREFIX.length);
  const file = name === START ? undefined : await fileOf(name === "" ? START : name);
  if (file === undefined) return call.refuse({ kind: "not_found", reason: "the page has no such file" });
  const isKnown = isSameEntity(call.request.headers.get("if-none-match"), file.headers.etag);
  if (isKnown) return new Response(null, { status: 304, headers: file.headers });
  return new Response(file.text, { headers: file.headers });
}

function servedFile(name: string, text: string): ServedFile {
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
  if (type === undefined) throw new Error(`Cannot serve "${name}": its kind of file is not known`);
  return { text, headers: { ...HEADERS, "content-type": type, etag } };
}

/** Proxies that compress mark the tag as weak. */
function isSameEntity(list: string | null, etag: string | undefined): boolean {
  return list !== null && list.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}
