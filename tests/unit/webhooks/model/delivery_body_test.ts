import { assertEquals } from "#assert";
import { bodyTemplateProblem, renderBody } from "../../../../src/webhooks/model/delivery_body.ts";
import { eventBody } from "../../../../src/webhooks/model/event.ts";
import { parseJson } from "../../../../src/base/exact_json.ts";

const ID = "c6e74d70-b08b-4d9a-b1d4-6dfcc646cdfa";
const DATA =
  '{"id":"7","total": 1.10,"big":12345678901234567890,"note":"say \\"hi\\"","none":null,"items":[{"a":1}]}';

function bodyOf(form: Parameters<typeof renderBody>[0], data = DATA): string | undefined {
  const event = { id: ID, kind: "Order.Created", createdAt: 0, body: eventBody("Order.Created", data) };
  const result = renderBody(form, event);
  if (result === undefined) return undefined;
  return result.problem ?? new TextDecoder().decode(result.body);
}

Deno.test("bodies: an endpoint without a form sends the body of the event", () => {
  assertEquals(bodyOf({}), undefined);
});

Deno.test("bodies: CloudEvents have the attributes of the event, and its data as it came", () => {
  assertEquals(
    bodyOf({ format: "cloudevents" }),
    `{"specversion":"1.0","id":"${ID}","source":"/weir","type":"Order.Created",` +
      `"time":"1970-01-01T00:00:00.000Z","datacontenttype":"application/json","data":${DATA}}`,
  );
});

const TEMPLATES: readonly (readonly [template: string, body: string])[] = [
  ["{}", "{}"],
  [
    '{"a":"{{ event }} {{ id }} {{ time }}"}',
    `{"a":"Order.Created ${ID} 1970-01-01T00:00:00.000Z"}`,
  ],
  ['{"a":"{{ data.total }}","b":"costs {{ data.total }}"}', '{"a":1.10,"b":"costs 1.10"}'],
  ['{"a":["{{ data.big }}",1.10,null,true]}', '{"a":[12345678901234567890,1.10,null,true]}'],
  ['{"a":"x {{ data.note }}"}', '{"a":"x say \\"hi\\""}'],
  ['{"a":"{{ data.items[0] }}"}', '{"a":{"a":1}}'],
  [`{"a":"{{ data.more | default: 'none' }}","b":"{{ data.none | default: 0 }}"}`, '{"a":"none","b":0}'],
  ['{"a":"{{ data.more }}"}', 'Cannot read "data.more": it has no value'],
  [
    '{"a":"x {{ data.items }}"}',
    'Cannot write "data.items" into a text: expected a text, a number, true or false, got a list',
  ],
  ['{"a":"{{ event.name }}"}', 'Cannot read "event.name": it has no value'],
];

Deno.test("bodies: a template is rendered, or its problem names the path", () => {
  const found = TEMPLATES.map(([template]) => [template, bodyOf({ template })]);
  assertEquals(found, TEMPLATES.map((row) => [...row]));
  assertEquals(TEMPLATES.map(([text]) => problemOf(text)), TEMPLATES.map(() => undefined));
});

Deno.test("bodies: a template that repeats the data has a bound", () => {
  const template = JSON.stringify({ a: Array(600).fill("{{ data }}") });
  assertEquals(problemOf(template), undefined);
  const data = JSON.stringify({ a: "x".repeat(500_000) });
  assertEquals(bodyOf({ template }, data), "Cannot render a body of more than 1048576 characters");
  const long = JSON.stringify({ a: "x".repeat(1_100_000) });
  assertEquals(bodyOf({ template: '{"a":"{{ data.a }}"}' }, long), long);
});

function problemOf(text: string): string | undefined {
  return bodyTemplateProblem(parseJson(text) as Parameters<typeof bodyTemplateProblem>[0]);
}

Deno.test("bodies: templates that are refused", () => {
  const table: readonly (readonly [template: string, problem: string])[] = [
    ['{"a":"{{ data.x"}', "a '{{' has no '}}' after it; write '{{ input.name }}'"],
    [
      '{"a":"{{ input.x }}"}',
      "a template cannot begin with 'input.x'; a path begins with 'data' or 'event' or 'id' or 'time'",
    ],
    ['{"{{ event }}":1}', "a key cannot contain a template; write a name instead"],
    [JSON.stringify({ a: "x".repeat(8_192) }), "expected at most 8192 characters of JSON"],
    [`${'{"a":'.repeat(33)}1${"}".repeat(33)}`, "expected at most 32 levels"],
  ];
  assertEquals(table.map(([text]) => [text, problemOf(text)]), table.map((row) => [...row]));
});
