import { assertEquals } from "#assert";
import {
  eventBody,
  eventKindProblem,
  eventPatternProblem,
  isReservedKind,
  matchesKind,
} from "../../../../src/webhooks/model/event.ts";

const LONGEST = `${"a".repeat(100)}.${"b".repeat(27)}`;
const EXPECTED =
  'expected words of letters, digits, _ and - joined by dots, such as "agent.reply.completed"; no word begins with -';
const NO_KIND = (text: string) => `${JSON.stringify(text)} is not an event kind; ${EXPECTED}`;
const NO_PATTERN = (text: string) =>
  `${JSON.stringify(text)} names no event kinds; expected a kind, a prefix such as "workflow.*" or "*"`;
const TOO_LONG = "expected an event kind of at most 128 characters, got 129";

const KINDS: readonly (readonly [kind: string, problem: string | undefined])[] = [
  ["a", undefined],
  ["0", undefined],
  ["_", undefined],
  ["agent.reply.completed", undefined],
  ["document.write.completed", undefined],
  ["a_1.b_2.c_3", undefined],
  ["A", undefined],
  ["Order.Created", undefined],
  ["a-b.c--d-", undefined],
  ["_-", undefined],
  [LONGEST, undefined],
  [`${LONGEST}b`, TOO_LONG],
  ...[
    ..."|.|a.|.a|a..b|-|-a|a.-b|a b|a*|*|a.*|ä|a\n|a\0|\u2028|a/b|__proto__\n".split("|"),
    "a\u0131",
    "a\u212a",
    "workfl\uff4fw.x",
  ].map((text) => [text, NO_KIND(text)] as const),
];

Deno.test("kinds of events", () => {
  assertEquals(KINDS.map(([kind]) => [kind, eventKindProblem(kind)]), KINDS.map((row) => [...row]));
});

const PATTERNS: readonly (readonly [pattern: string, problem: string | undefined])[] = [
  ["*", undefined],
  ["a", undefined],
  ["a.*", undefined],
  ["workflow.execution.*", undefined],
  ["workflow.execution.completed", undefined],
  ["A.*", undefined],
  ["Order-Line.*", undefined],
  ["Workflow", undefined],
  ["workflow-x.*", undefined],
  ["Workflow.*", '"Workflow.*" names no event kinds; kinds that begin with "workflow." are in lower case'],
  ["WORKFLOW.x", '"WORKFLOW.x" names no event kinds; kinds that begin with "workflow." are in lower case'],
  [
    "Delivery.failed",
    '"Delivery.failed" names no event kinds; kinds that begin with "delivery." are in lower case',
  ],
  [`${LONGEST}.*`, undefined],
  [`${LONGEST}b.*`, TOO_LONG],
  [`${LONGEST}b`, TOO_LONG],
  ...["", ".*", "**", "*.*", "*.a", "a*", "a.*.b", "a.*.*", "a..*", "-.*", " *", "a.* ", "a.**", "a, b"].map((
    text,
  ) => [text, NO_PATTERN(text)] as const),
];

Deno.test("kinds that an endpoint may want", () => {
  assertEquals(PATTERNS.map(([text]) => [text, eventPatternProblem(text)]), PATTERNS.map((row) => [...row]));
});

const MATCHES: readonly (readonly [patterns: readonly string[], kind: string, matches: boolean])[] = [
  [[], "a", false],
  [["*"], "a.b", true],
  [["*"], "workflow.execution.completed", true],
  [["*"], "ratelimit.over_limit", false],
  [["*"], "config.loaded", false],
  [["*"], "endpoint.failing", false],
  [["*"], "delivery.failed", false],
  [["*"], "endpoints.failing", true],
  [["*", "endpoint.*"], "endpoint.failing", true],
  [["config.loaded"], "config.loaded", true],
  [["a"], "a", true],
  [["a"], "a.b", false],
  [["a.b"], "a", false],
  [["a.*"], "a.b", true],
  [["a.*"], "a.b.c", true],
  [["a.*"], "a", false],
  [["a.*"], "ab.c", false],
  [["a.b.*"], "a.bc.d", false],
  [["a.b.*"], "a.c", false],
  [["workflow.*"], "workflow.execution.completed", true],
  [["workflow.*"], "workflows.execution", false],
  [["order.*"], "Order.created", false],
  [["Order.*"], "Order.created", true],
  [["Order.*"], "Order-x.created", false],
  [["order.created"], "order.Created", false],
  [["x", "y.*", "a.b"], "a.b", true],
  [["x", "y.*"], "a.b", false],
];

Deno.test("which kinds are subscribed", () => {
  const found = MATCHES.map(([patterns, kind]) => [patterns, kind, matchesKind(patterns, kind)]);
  assertEquals(found, MATCHES.map((row) => [...row]));
});

Deno.test("kinds that only the service itself reports", () => {
  const kinds = ["workflow.execution.completed", "workflow.a", "workflow", "workflows.a", "a.workflow.b"];
  assertEquals(kinds.map(isReservedKind), [true, true, false, false, false]);
  const others = [
    "Workflow.x",
    "WORKFLOW.execution.completed",
    "Config.loaded",
    "rateLimit.x",
    "workflow-x.a",
  ];
  assertEquals(others.map(isReservedKind), [true, true, true, true, false]);
  const operational = ["config.loaded", "delivery.failed", "endpoint.failing", "ratelimit.over_limit"];
  assertEquals(operational.map(isReservedKind), [true, true, true, true]);
});

Deno.test("the body of an event has its kind first and its payload as it came", () => {
  const payload = '{"n": 12345678901234567890, "x":1.10,"u":"\u00fc","__proto__":{}}';
  const body = new TextDecoder().decode(eventBody("agent.reply.completed", payload));
  assertEquals(body, `{"event":"agent.reply.completed","data":${payload}}`);
});
