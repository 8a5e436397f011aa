/** Answers the requests that examples send to `api.example.com`, in place of the platform's `fetch`. */
const ITEMS = [{ id: 1, name: "first" }, { id: 2, name: "second" }, { id: 3, name: "third" }];
let visits = 0;

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const { host, pathname } = new URL(request.url);
  if (host === "elsewhere.example") return seen(request, ["authorization", "x-api-key", "accept"]);
  if (host !== "api.example.com") throw new TypeError(`Cannot ask "${host}": it is not in the examples`);
  if (pathname.startsWith("/items")) return await item(request);
  switch (pathname) {
    case "/busy":
      return visits++ === 0 ? new Response(null, { status: 503 }) : new Response("the second time");
    case "/me":
      return new Response(null, { status: request.headers.has("authorization") ? 200 : 401 });
    case "/large":
      return new Response("x".repeat(5_000));
    case "/old":
      return new Response(null, { status: 302, headers: { location: "https://elsewhere.example/new" } });
    case "/upper":
      return new Response((await request.text()).toUpperCase());
    case "/silent":
      return await new Promise((_, reject) => {
        request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
      });
    default:
      throw new TypeError(`Cannot ask for "${pathname}": it is not in the examples`);
  }
};

async function item(request: Request): Promise<Response> {
  const { method } = request;
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/items") {
    if (method === "POST") return Response.json({ id: 4, ...await typed(request) }, { status: 201 });
    return Response.json(searchParams.get("page") === "2" ? ITEMS.slice(2) : ITEMS.slice(0, 1));
  }
  if (pathname !== "/items/1") return new Response("no such item", { status: 404 });
  if (method === "DELETE") return new Response(null, { status: 204 });
  if (method === "PUT") return Response.json({ id: 1, ...await typed(request) });
  return Response.json({ ...ITEMS[0], ...method === "PATCH" ? await typed(request) : {} });
}

/** A body that has to say it is JSON of some kind. */
async function typed(request: Request): Promise<Record<string, unknown>> {
  const type = request.headers.get("content-type");
  if (type?.endsWith("json") !== true) throw new TypeError(`Cannot read a body of type "${type}"`);
  return await request.json();
}

function seen({ headers }: Request, names: readonly string[]): Response {
  return new Response(`it came with: ${names.filter((name) => headers.has(name)).join(", ")}`);
}
