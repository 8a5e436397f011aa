import { assert, assertEquals, assertThrows } from "#assert";
import { type JsonValue, parseJson, stringifyJson } from "../../../../src/base/exact_json.ts";
import {
  parseTemplate,
  pathsOf,
  renderText,
  renderValue,
  TemplateError,
  type TemplateScope,
  type TextTemplate,
} from "../../../../src/webhooks/model/template.ts";

const INPUT = parseJson(
  `{"id":"a/b","n":12345678901234567890,"price":1.10,"on":true,"none":null,"list":[{"id":7},[1,2]],
    "__proto__":{"own":"yes"},"order id":"spaced","größe":"XL","text":"abc","deep":{"a":{"b":"c"}}}`,
);
const SCOPE: TemplateScope = {
  read(root, name) {
    if (root === "input") return INPUT;
    if (root === "execution") return { id: "e-1" };
    if (root === "env") return name === "TOKEN" ? "s3cret" : undefined;
    return name === "first" ? { body: { ok: true } } : undefined;
  },
};

function templateOf(text: string): TextTemplate {
  const { template, problem } = parseTemplate(text);
  assert(template !== undefined, problem);
  return template;
}

function valueOf(text: string): JsonValue {
  return renderValue({ kind: "text", template: templateOf(text) }, SCOPE);
}

const VALUES: readonly (readonly [string, string])[] = [
  ["{{ input.id }}", `"a/b"`],
  ["{{input.id}}", `"a/b"`],
  ["{{ input.n }}", "12345678901234567890"],
  ["{{ input.price }}", "1.10"],
  ["{{ input.on }}", "true"],
  ["{{ input.none }}", "null"],
  ["{{ input.list }}", `[{"id":7},[1,2]]`],
  ["{{ input.list[0] }}", `{"id":7}`],
  ["{{ input.list[0].id }}", "7"],
  ["{{ input.list.0.id }}", "7"],
  ["{{ input.list[1][1] }}", "2"],
  ["{{ input.deep.a.b }}", `"c"`],
  [`{{ input["order id"] }}`, `"spaced"`],
  ["{{ input.größe }}", `"XL"`],
  ["{{ input.__proto__.own }}", `"yes"`],
  ["{{ execution.id }}", `"e-1"`],
  ["{{ env.TOKEN }}", `"s3cret"`],
  ["{{ steps.first.body.ok }}", "true"],
  ["n={{ input.n }}, on={{ input.on }}", `"n=12345678901234567890, on=true"`],
  ["{{ input.id }} ", `"a/b "`],
  ["{{ input.absent | default: 'x' }}", `"x"`],
  ['{{ input.absent|default:"x | y" }}', `"x | y"`],
  ["{{ input.absent.deeper | default: 1.10 }}", "1.10"],
  ["{{ steps.second.body | default: null }}", "null"],
  ["{{ input.none | default: false }}", "false"],
  ["{{ input.id | default: 'x' }}", `"a/b"`],
  [`{{ input["a | b"] | default: 2 }}`, "2"],
  ["n={{ input.absent | default: 0 }}, on={{ input.on | default: false }}", `"n=0, on=true"`],
  ["no template", `"no template"`],
  ["", `""`],
  ["a }} b { c", `"a }} b { c"`],
];

for (const [text, json] of VALUES) {
  Deno.test(`template: ${JSON.stringify(text)} is ${json}`, () => {
    assertEquals(stringifyJson(valueOf(text)), json);
  });
}

const MISSING = [
  "input.nothing",
  "input.constructor",
  "input.toString",
  "input.deep.__proto__",
  "input.deep.constructor.name",
  "input.list.length",
  "input.list[2]",
  "input.list[00]",
  "input.list.map",
  "input.text[0]",
  "input.text.length",
  "input.n.rawJSON",
  "input.none.a",
  "input.on.valueOf",
  "env.PATH",
  "steps.second.body",
  "execution.constructor",
];

for (const path of MISSING) {
  Deno.test(`template: ${path} has no value, or is not a path`, () => {
    const { template, problem } = parseTemplate(`{{ ${path} }}`);
    if (template === undefined) return assert(problem.includes("is not a path"));
    const error = assertThrows(() => renderValue({ kind: "text", template }, SCOPE));
    assert(error instanceof TemplateError);
    assertEquals(error.message, `Cannot read "${path}": it has no value`);
  });
}

const PROBLEMS: readonly (readonly [string, string])[] = [
  ["{{ input.id", "a '{{' has no '}}' after it; write '{{ input.name }}'"],
  [
    "{{ }}",
    "a template cannot begin with ''; a path begins with 'input' or 'steps' or 'execution' or 'env'",
  ],
  [
    "{{ inputs.id }}",
    "a template cannot begin with 'inputs.id'; a path begins with 'input' or 'steps' or 'execution' or 'env'",
  ],
  [
    "{{ 1 + 1 }}",
    "a template cannot begin with '1 + 1'; a path begins with 'input' or 'steps' or 'execution' or 'env'",
  ],
  [
    "{{ input.id | upper }}",
    "the template 'input.id | upper' has an unknown filter; only '| default: ' and a value may follow a path",
  ],
  [
    "{{ input.id | default: x }}",
    "the template 'input.id | default: x' has no valid default; write '| default: ' and a number, true, false, null or a text in quotes",
  ],
  [
    "{{ input.id | default: [] }}",
    "the template 'input.id | default: []' has no valid default; write '| default: ' and a number, true, false, null or a text in quotes",
  ],
  [
    "{{ input.id | default }}",
    "the template 'input.id | default' has no valid default; write '| default: ' and a number, true, false, null or a text in quotes",
  ],
  [
    "{{ x | default: 1 }}",
    "a template cannot begin with 'x'; a path begins with 'input' or 'steps' or 'execution' or 'env'",
  ],
  [
    "{{ input..id }}",
    "the template 'input..id' is not a path; use only names and indexes, such as '{{ input.items[0].id }}'",
  ],
  [
    "{{ input.list[-1] }}",
    "the template 'input.list[-1]' is not a path; use only names and indexes, such as '{{ input.items[0].id }}'",
  ],
  ["{{ steps }}", "the template 'steps' has no name; write 'steps.' and a name"],
  ["{{ env }}", "the template 'env' has no name; write 'env.' and a name"],
];

for (const [text, problem] of PROBLEMS) {
  Deno.test(`template: ${text} is refused`, () => {
    assertEquals(parseTemplate(text), { problem });
  });
}

Deno.test("template: only the roots that are named may be read", () => {
  assertEquals(parseTemplate("{{ env.TOKEN }}", ["input"]), {
    problem: "a template cannot begin with 'env.TOKEN'; a path begins with 'input'",
  });
});

Deno.test("template: lists, objects and null have no place in a text", () => {
  const texts = ["a{{ input.list }}", "a{{ input.deep }}", "a{{ input.none }}"].map((text) =>
    assertThrows(() => valueOf(text)).message
  );
  assertEquals(texts, [
    'Cannot write "input.list" into a text: expected a text, a number, true or false, got a list',
    'Cannot write "input.deep" into a text: expected a text, a number, true or false, got an object',
    'Cannot write "input.none" into a text: expected a text, a number, true or false, got null',
  ]);
});

Deno.test("template: an object keeps names of any kind as its own", () => {
  const value = renderValue({
    kind: "object",
    entries: [
      ["__proto__", { kind: "text", template: templateOf("{{ input.id }}") }],
      ["list", { kind: "list", items: [{ kind: "value", value: 1 }] }],
    ],
  }, SCOPE);
  assertEquals(stringifyJson(value), `{"__proto__":"a/b","list":[1]}`);
});

Deno.test("template: a value that looks like a template is not read again", () => {
  const scope: TemplateScope = { read: () => ({ a: "{{ env.TOKEN }}" }) };
  assertEquals(renderText(templateOf("x {{ input.a }}"), scope), "x {{ env.TOKEN }}");
});

Deno.test("template: its paths are known before it is filled in", () => {
  const template = templateOf("a {{ input.list[0].id }} b {{ steps.first.body }}");
  assertEquals(pathsOf(template).map(({ root, keys }) => [root, ...keys]), [
    ["input", "list", "0", "id"],
    ["steps", "first", "body"],
  ]);
});

Deno.test("template: a text that templates would make too long is refused while it grows", () => {
  let read = 0;
  const scope: TemplateScope = {
    read() {
      read++;
      return { text: "x".repeat(1_048_576) };
    },
  };
  const error = assertThrows(() => renderText(templateOf("{{ input.text }}".repeat(10_000)), scope));
  assert(error instanceof TemplateError);
  assertEquals(error.message, "Cannot render a text: it would have more than 16777216 characters");
  assertEquals(read, 17);
});
