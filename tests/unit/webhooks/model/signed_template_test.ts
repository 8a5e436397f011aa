import { assertEquals } from "#assert";
import { SIGNED_PATTERN, signedParts } from "../../../../src/webhooks/model/signed_template.ts";

Deno.test("signed templates: the parts of a template", () => {
  assertEquals(signedParts("v0:{time}.{header.X-App}{body}"), [
    { kind: "text", text: "v0:" },
    { kind: "value", name: "time" },
    { kind: "text", text: "." },
    { kind: "header", name: "x-app" },
    { kind: "body" },
  ]);
});

const KNOWN = "expected one of {body}, {id}, {time}, {method}, {url}, {path}, {header.NAME}";

const PROBLEMS: Readonly<Record<string, string>> = {
  "": "expected {body}: without it, the body is not signed",
  "{time}": "expected {body}: without it, the body is not signed",
  "{body}.{body}": "a second {body} at character 8; expected it once",
  "{body}{Time}": `unknown {Time} at character 7; ${KNOWN}`,
  "{body}{}": `unknown {} at character 7; ${KNOWN}`,
  "{body}{ time }": `unknown { time } at character 7; ${KNOWN}`,
  "{body}{header.}": `unknown {header.} at character 7; ${KNOWN}`,
  "{body}{header.a_b}": `unknown {header.a_b} at character 7; ${KNOWN}`,
  "{body}{header.constructor}{toString}": `unknown {toString} at character 27; ${KNOWN}`,
  "a{body": "unexpected { at character 2; expected a placeholder such as {body}",
  "{{body}}": "unexpected { at character 1; expected a placeholder such as {body}",
  "{body}}": "unexpected } at character 7; expected a placeholder such as {body}",
  "a\u00e9{body}": "expected printable ASCII characters at character 2",
  "{body}\n": "expected printable ASCII characters at character 7",
};

Deno.test("signed templates: a problem is named with its position, and the pattern of the API knows it", () => {
  const pattern = new RegExp(SIGNED_PATTERN);
  for (const [template, problem] of Object.entries(PROBLEMS)) {
    assertEquals(signedParts(template), { problem }, template);
    assertEquals(pattern.test(template), false, template);
  }
  for (const template of ["{body}", "{url}{body}", "{method} {path} {header.A-b} {id} {time} {body} ~!"]) {
    assertEquals([Array.isArray(signedParts(template)), pattern.test(template)], [true, true], template);
  }
});
