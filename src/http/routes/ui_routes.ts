import { createHash } from "node:crypto";
import { debugRightOf, type DebugTokens, unauthorizedRefusal } from "./bearer_token.ts";
import type { DebugRoute } from "./debug.ts";
import { ownSiteGuard } from "../server/request_guards.ts";
import type { Call } from "../server/router.ts";

/** A file of the page, ready to be served. */
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
/** The page runs only our own files and parses no text as markup. */
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
const PAGE_HEADERS = {
  // The page is always that of the running program; unchanged files are not sent again.
  "cache-control": "no-cache",
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};
const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "transfer-encoding": "chunked",
  // A proxy that compresses or buffers would delay the events.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};
const RETRY_SECONDS = "10";

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
    route(`${PREFIX}*`, "files of the web page"),
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
  if (type === undefined) throw new Error(`Cannot serve "${name}": unknown kind of file`);
  return { text, headers: { ...PAGE_HEADERS, "content-type": type, etag } };
}

/** Proxies that compress mark the tag as weak. */
function isSameEntity(list: string | null, etag: string | undefined): boolean {
  return list !== null && list.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

/** The source of the page's live data. */
interface UiFeed {
  /** A stream of events that ends with any of the signals; undefined when too many are open. */
  open(ends: { readonly signals: readonly AbortSignal[] }): ReadableStream<Uint8Array> | undefined;
}

/** Options of `uiLiveRoute`. */
interface UiLiveRouteOptions extends DebugTokens {
  readonly feed: UiFeed;
}

/** `GET /ui/live` of the debug port: the state of the service as an event, immediately and each second. */
export function uiLiveRoute(options: UiLiveRouteOptions): DebugRoute {
  return {
    path: "/ui/live",
    methods: ["GET", "HEAD"],
    help:
      "stream of the data of the web page; requires DEBUG_TOKEN, if it is set, or an administration token",
    open: true,
    // Streams are few, and a window that was opened by a link would hold one of them.
    handle: ownSiteGuard({ links: false })((call) => openStream(call, options)),
  };
}

function openStream(call: Call, options: UiLiveRouteOptions): Response {
  const right = debugRightOf(call, options);
  if (right === "none") return call.refuse(unauthorizedRefusal(call));
  const { request, closing } = call;
  // The router would wait for the end of the body.
  if (request.method === "HEAD") return new Response(null, { headers: STREAM_HEADERS });
  const signals = [request.signal, closing];
  if (right === "counters") signals.push(options.administrators.replaced);
  const stream = options.feed.open({ signals });
  if (stream !== undefined) return new Response(stream, { headers: STREAM_HEADERS });
  return call.refuse({
    kind: "busy",
    reason: "too many streams are open",
    detail: "Cannot open another stream: too many are open; close a page that shows this service",
    headers: { "retry-after": RETRY_SECONDS },
  });
}
