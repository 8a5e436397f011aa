import { assertEquals, assertRejects } from "#assert";
import { Api, ApiProblem } from "../../../src/ui/page/api.ts";
import { Session } from "../../../src/ui/page/session.ts";

const TOKEN = "the-token-of-the-administration";

function serve(answer: (request: Request) => Response) {
  const seen: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    seen.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
    return answer(request);
  });
  return {
    seen,
    origin: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function apiOf(origin: string, session: Session): Api {
  return new Api(session, (url, init) => fetch(new URL(String(url), origin), init));
}

function factsOf(problem: unknown): unknown[] {
  return problem instanceof ApiProblem ? [problem.status, problem.message] : [problem];
}

Deno.test("page: a call that is led elsewhere fails, and its token goes nowhere", async () => {
  await using elsewhere = serve(() => Response.json({}));
  await using service = serve(() => Response.redirect(`${elsewhere.origin}/api/v1/events`, 307));
  const session = new Session();
  session.store("administration", TOKEN);
  const call = apiOf(service.origin, session).administer("/events", { body: {} });
  const problem = await assertRejects(() => call);
  assertEquals(factsOf(problem), [0, "Cannot reach the service: the connection failed"]);
  assertEquals(service.seen, [`GET /api/v1/whoami Bearer ${TOKEN}`, `POST /api/v1/events Bearer ${TOKEN}`]);
  assertEquals(elsewhere.seen, []);
});

Deno.test("page: a token that is refused is kept no longer, and told in no error", async () => {
  await using service = serve(() => new Response("<p>no</p>", { status: 401 }));
  const session = new Session();
  session.store("administration", TOKEN);
  const api = apiOf(service.origin, session);
  const problem = await assertRejects(() => api.administer("/events"));
  assertEquals(factsOf(problem), [401, "The service responded with status 401"]);
  assertEquals([session.holdsToken, session.holds(TOKEN)], [false, false]);
});
