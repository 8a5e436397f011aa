import { assertEquals } from "#assert";
import { problemText } from "../../../../src/base/problem.ts";
import { readWorkflowFile } from "../../../../src/webhooks/workflows/file.ts";

const SPEC = `workflow: order-intake           # its id
timeout: 1h
steps:
  - name: enrich
    request:
      method: POST
      url: https://crm.example/orders/{{ input.id }}
      headers: { authorization: "Bearer {{ env.CRM_TOKEN }}" }
      query: { source: weir }
      body: "{{ input }}"
      timeout: 10s
    retry: { attempts: 3, backoff: 1s }
  - name: fair-use
    limit: { domain: edge, descriptors: [{ customer: "{{ input.customer }}" }], onOver: wait }
  - name: result
    set: { total: "{{ steps.enrich.body.total }}", big: 12345678901234567890, price: 1.10, on: yes, off: false, none: null, list: [1, "2"] }
`;

Deno.test("workflow file: the whole of an example", () => {
  const { workflow, problems } = readWorkflowFile("a.yaml", SPEC, ["CRM_TOKEN"]);
  assertEquals(problems, []);
  const path = (text: string, ...keys: string[]) => ({ text, root: text.split(".")[0], keys });
  assertEquals(JSON.parse(JSON.stringify(workflow)), {
    id: "order-intake",
    timeoutMs: 3_600_000,
    steps: [
      {
        kind: "request",
        name: "enrich",
        method: "POST",
        url: { origin: "https://crm.example", path: ["/orders/", path("input.id", "id")] },
        headers: [["authorization", ["Bearer ", path("env.CRM_TOKEN", "CRM_TOKEN")]]],
        query: [["source", ["weir"]]],
        body: { kind: "text", template: [path("input")] },
        timeoutMs: 10_000,
        retry: { attempts: 3, backoffMs: 1_000 },
      },
      {
        kind: "limit",
        name: "fair-use",
        domain: "edge",
        descriptors: [[["customer", [path("input.customer", "customer")]]]],
        onOver: "wait",
      },
      {
        kind: "set",
        name: "result",
        value: {
          kind: "object",
          entries: [
            ["total", {
              kind: "text",
              template: [path("steps.enrich.body.total", "enrich", "body", "total")],
            }],
            // Written with its digits, and read here by a parser that has no room for them.
            ["big", { kind: "value", value: 12345678901234567000 }],
            ["price", { kind: "value", value: 1.1 }],
            ["on", { kind: "value", value: "yes" }],
            ["off", { kind: "value", value: false }],
            ["none", { kind: "value", value: null }],
            ["list", { kind: "value", value: [1, "2"] }],
          ],
        },
      },
    ],
  });
  assertEquals(JSON.stringify(workflow).includes('"value":12345678901234567890'), true);
  assertEquals(JSON.stringify(workflow).includes('"value":1.10'), true);
});

Deno.test("workflow file: what holds where nothing is written", () => {
  const text =
    "workflow: a\nsteps:\n- {name: b, request: {url: 'http://h'}}\n- {name: c, limit: {domain: d, descriptors: [{k: 5}]}}";
  assertEquals(readWorkflowFile("a.yaml", text), {
    id: "a",
    at: "a.yaml:1:1",
    stepPositions: ["a.yaml:3:3", "a.yaml:4:3"],
    problems: [],
    workflow: {
      id: "a",
      timeoutMs: 3_600_000,
      steps: [
        {
          kind: "request",
          name: "b",
          method: "GET",
          url: { origin: "http://h", path: ["/"] },
          headers: [],
          query: [],
          body: undefined,
          timeoutMs: 10_000,
          retry: { attempts: 1, backoffMs: 1_000 },
        },
        { kind: "limit", name: "c", domain: "d", descriptors: [[["k", ["5"]]]], onOver: "fail" },
      ],
    },
  });
});

/** Steps after a right beginning; the first of them begins at line 3, column 3. */
const steps = (text: string) => `workflow: a\nsteps:\n${text}`;
const request = (text: string) => steps(`- name: b\n  request:\n    url: https://h/\n${text}`);
const REQUEST_KEYS = "method, url, headers, query, form, body, timeout";

const REFUSED: Readonly<Record<string, readonly [string, ...string[]]>> = {
  "an empty file": ["", "a.yaml:1:1: the file is empty; begin with 'workflow: a-name'"],
  "a list": ["- a", "a.yaml:1:1: expected a mapping with workflow and steps, got a list"],
  "no YAML": [
    "workflow: [",
    "a.yaml:1:12: not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]",
  ],
  "no id": [
    "steps: [{name: b, set: {}}]",
    "a.yaml:1:1: there is no workflow; add a name of a-z, 0-9 and -, at most 64 characters",
  ],
  "an id with capitals": [
    "workflow: A\nsteps: [{name: b, set: {}}]",
    "a.yaml:1:11: workflow: expected a name of a-z, 0-9 and -, at most 64 characters, got 'A'",
  ],
  "no steps": ["workflow: a", "a.yaml:1:1: there are no steps; add a list of at least one under 'steps'"],
  "an empty list of steps": [
    "workflow: a\nsteps: []",
    "a.yaml:2:8: steps: there are no steps; add a list of at least one under 'steps'",
  ],
  "too many steps": [
    steps(Array.from({ length: 101 }, (_, index) => `- {name: s${index}, set: {}}`).join("\n")),
    "a.yaml:3:1: steps: there are more than 100 steps; split it into several workflows",
  ],
  "an unknown key at the top": [
    "workflow: a\nstep: []\nsteps: [{name: b, set: {}}]",
    "a.yaml:2:1: unknown key 'step'; did you mean 'steps'?",
  ],
  "an unknown key in a step": [
    steps("- {name: b, set: {}, when: x}"),
    "a.yaml:3:22: steps[0]: unknown key 'when'; expected one of name, if, request, limit, set, retry",
  ],
  "a condition that is a list": [
    steps("- {name: b, set: {}, if: [input.x]}"),
    "a.yaml:3:26: steps[0].if: expected a mapping, got a list",
  ],
  "an empty condition": [
    steps("- {name: b, set: {}, if: {}}"),
    "a.yaml:3:26: steps[0].if: expected 1 to 10 paths with their values",
  ],
  "a condition on a path without a root": [
    steps("- {name: b, set: {}, if: {total: [1]}}"),
    "a.yaml:3:26: steps[0].if: a template cannot begin with 'total'; a path begins with 'input' or 'steps' or 'execution'",
  ],
  "a condition on a secret": [
    steps("- {name: b, set: {}, if: {env.TOKEN: [a]}}"),
    "a.yaml:3:26: steps[0].if: a template cannot begin with 'env.TOKEN'; a path begins with 'input' or 'steps' or 'execution'",
  ],
  "a condition on a later step": [
    steps("- {name: b, set: {}, if: {steps.c.x: [a]}}\n- {name: c, set: {}}"),
    "a.yaml:3:26: steps[0].if: the path 'steps.c.x' reads a step that does not come before this one; move that step up",
  ],
  "a condition with a template": [
    steps('- {name: b, set: {}, if: {input.a: ["{{ input.b }}"]}}'),
    "a.yaml:3:26: steps[0].if: a condition cannot contain a template; write a path as the key, and a fixed value",
  ],
  "a condition with an unknown operator": [
    steps("- {name: b, set: {}, if: {input.a: {above: 1}}}"),
    "a.yaml:3:26: steps[0].if: 'input.a': 'above' is no operator; expected equal, notEqual, in, exists, greater, less",
  ],
  "an unknown key in a request": [
    request("    follow: true"),
    `a.yaml:6:5: steps[0].request: unknown key 'follow'; expected one of ${REQUEST_KEYS}`,
  ],
  "a timeout without a unit": [
    "workflow: a\ntimeout: 5\nsteps: [{name: b, set: {}}]",
    "a.yaml:2:10: timeout: expected a duration from 1ms to 30d, such as 1h, got '5'",
  ],
  "a timeout of nothing": [
    "workflow: a\ntimeout: 0\nsteps: [{name: b, set: {}}]",
    "a.yaml:2:10: timeout: expected a duration from 1ms to 30d, such as 1h, got '0'",
  ],
  "a step without a name": [
    steps("- set: {}"),
    "a.yaml:3:3: steps[0]: there is no name; add a name of letters, digits, - and _, at most 64 characters",
  ],
  "a step that is a text": [
    steps("- enrich"),
    "a.yaml:3:3: steps[0]: expected a mapping with a name, got 'enrich'",
  ],
  "two steps of one name": [
    steps("- {name: b, set: {}}\n- {name: b, set: {}}"),
    "a.yaml:4:10: steps[1].name: the name 'b' is given to two steps; rename one",
  ],
  "a step of no kind": [
    steps("- name: b"),
    "a.yaml:3:3: steps[0]: a step has one of request, limit, set; this one has none",
  ],
  "a step of two kinds": [
    steps("- {name: b, set: {}, limit: {}}"),
    "a.yaml:3:3: steps[0]: a step has one of request, limit, set; this one has limit and set",
  ],
  "a retry without a request": [
    steps("- {name: b, set: {}, retry: {attempts: 2}}"),
    "a.yaml:3:29: steps[0].retry: only a step with a request can be retried; remove it",
  ],
  "a request without a URL": [
    steps("- name: b\n  request: {method: GET}"),
    "a.yaml:4:12: steps[0].request: there is no url; add one such as https://host/path",
  ],
  "a template for a host": [
    steps("- name: b\n  request: { url: 'https://{{ input.host }}/' }"),
    "a.yaml:4:19: steps[0].request.url: a template cannot stand for the host or the port of a URL; " +
    "expected one such as 'https://host/path/{{ input.id }}'",
  ],
  "an unknown method": [
    request("    method: get"),
    "a.yaml:6:13: steps[0].request.method: expected one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, got 'get'",
  ],
  "a body of a GET request": [
    request("    method: GET\n    body: {}"),
    "a.yaml:7:11: steps[0].request.body: a GET request has no body; remove it, or write another method",
  ],
  "a header of ours": [
    request("    headers: {Host: x, Idempotency-Key: y}"),
    "a.yaml:6:15: steps[0].request.headers.Host: the header Host is set by Weir; remove it",
    "a.yaml:6:24: steps[0].request.headers.Idempotency-Key: the header Idempotency-Key is set by Weir; remove it",
  ],
  "a template for the name of a header": [
    request("    headers: {'{{ input.x }}': x}"),
    "a.yaml:6:15: steps[0].request.headers.{{ input.x }}: '{{ input.x }}' is not a valid header name; write letters, digits and -",
  ],
  "a header given twice": [
    request("    headers: {a: x, A: y}"),
    "a.yaml:6:21: steps[0].request.headers.A: the header A is given twice; keep one",
  ],
  "a header of several lines": [
    request('    headers: {a: "x\\ny"}'),
    "a.yaml:6:15: steps[0].request.headers.a: a header cannot hold a line break; write one line",
  ],
  "a content type that is not JSON": [
    request("    method: POST\n    body: a\n    headers: {content-type: text/plain}"),
    "a.yaml:8:15: steps[0].request.headers.content-type: a body is sent as JSON; " +
    "write a content type such as application/json, or remove it",
  ],
  "a list in a list as the value of a query": [
    request("    query: {a: [1, [2]]}"),
    "a.yaml:6:20: steps[0].request.query.a[1]: expected a text, got a list",
  ],
  "nothing in a list of a form": [
    request("    form: {a: [null]}"),
    "a.yaml:6:16: steps[0].request.form.a[0]: expected a text, got nothing",
  ],
  "a form and a body": [
    request("    form: {a: b}\n    body: {}"),
    "a.yaml:6:11: steps[0].request.form: a request has a body or a form; keep one",
  ],
  "a form in a request without a body": [
    request("    method: GET\n    form: {a: b}"),
    "a.yaml:7:11: steps[0].request.form: a GET request has no body; remove it, or write another method",
  ],
  "a form of another content type": [
    request("    form: {a: b}\n    headers: {content-type: application/json}"),
    "a.yaml:7:15: steps[0].request.headers.content-type: a form is sent as " +
    "application/x-www-form-urlencoded; write this content type, or remove it",
  ],
  "a template in the name of a form": [
    request("    form: {'{{ input.a }}': b}"),
    "a.yaml:6:12: steps[0].request.form.{{ input.a }}: a name cannot contain a template; write a name",
  ],
  "a request that may take too long": [
    request("    timeout: 1h"),
    "a.yaml:6:14: steps[0].request.timeout: expected a duration from 1ms to 15m, such as 10s, got '1h'",
  ],
  "attempts that are none": [
    request("  retry: {attempts: 0, backoff: x}"),
    "a.yaml:6:21: steps[0].retry.attempts: expected a whole number from 1 to 100, got '0'",
    "a.yaml:6:33: steps[0].retry.backoff: expected a duration from 1ms to 1h, such as 1s, got 'x'",
  ],
  "a limit of no domain": [
    steps("- {name: b, limit: {descriptors: [{a: b}]}}"),
    "a.yaml:3:20: steps[0].limit: there is no domain; add the name of a domain, without templates",
  ],
  "a template for a domain": [
    steps("- {name: b, limit: {domain: '{{ input.d }}', descriptors: [{a: b}]}}"),
    "a.yaml:3:29: steps[0].limit.domain: expected the name of a domain, without templates, got '{{ input.d }}'",
  ],
  "a limit of no descriptors": [
    steps("- {name: b, limit: {domain: d}}\n- {name: c, limit: {domain: d, descriptors: [{}]}}"),
    "a.yaml:3:20: steps[0].limit: there are no descriptors; add a list such as [{ customer: acme }]",
    "a.yaml:4:46: steps[1].limit.descriptors[0]: expected a mapping of 1 to 100 keys, got one of 0 keys",
  ],
  "an unknown word for over the limit": [
    steps("- {name: b, limit: {domain: d, descriptors: [{a: b}], onOver: later}}"),
    "a.yaml:3:63: steps[0].limit.onOver: expected one of fail, wait, got 'later'",
  ],
  "a set that is no mapping": [
    steps("- {name: b, set: [1]}"),
    "a.yaml:3:18: steps[0].set: expected a mapping, got a list",
  ],
  "a set without a value": [
    steps("- {name: b, set: }"),
    "a.yaml:3:18: steps[0].set: set has no value; add one, or leave set out",
  ],
  "a number that JSON has not": [
    steps("- {name: b, set: {a: .inf, b: 007}}"),
    "a.yaml:3:22: steps[0].set.a: '.inf' is not a JSON number; put it in quotes, or write it plainly",
    "a.yaml:3:31: steps[0].set.b: '007' is not a JSON number; put it in quotes, or write it plainly",
  ],
  "an unknown root": [
    steps("- {name: b, set: {a: ['{{ inputs.x }}']}}"),
    "a.yaml:3:23: steps[0].set.a[0]: a template cannot begin with 'inputs.x'; " +
    "a path begins with 'input' or 'steps' or 'execution' or 'env'",
  ],
  "a template in a key": [
    steps("- {name: b, set: {'{{ input.x }}': 1}}"),
    "a.yaml:3:19: steps[0].set: a key cannot contain a template; write a name instead of '{{ input.x }}'",
  ],
  "the result of a later step, of itself, and of none": [
    steps(
      "- {name: b, set: {x: '{{ steps.c.y }}', y: '{{ steps.b.y }}'}}\n- {name: c, set: {x: '{{ steps.d.y }}'}}",
    ),
    "a.yaml:3:22: steps[0].set.x: the template 'steps.c.y' reads a step that does not come before this one; move that step up",
    "a.yaml:3:44: steps[0].set.y: the template 'steps.b.y' reads a step that does not come before this one; move that step up",
    "a.yaml:4:22: steps[1].set.x: the template 'steps.d.y' reads an unknown step; those before this one are b",
  ],
  "a step of another prototype": [
    steps("- {name: b, set: {x: '{{ steps.constructor.y }}'}}"),
    "a.yaml:3:22: steps[0].set.x: the template 'steps.constructor.y' reads a step, but this one is the first",
  ],
  "an environment variable that is not named": [
    steps("- {name: b, set: {x: '{{ env.HOME }}', y: '{{ env.OK.a }}'}}"),
    "a.yaml:3:22: steps[0].set.x: the template 'env.HOME' reads an environment variable that is not in WORKFLOW_ENV; add HOME to it",
    "a.yaml:3:43: steps[0].set.y: the template 'env.OK.a' reads a field of an environment variable, which is a text; end it after its name",
  ],
  "what an execution has not": [
    steps("- {name: b, set: {x: '{{ execution.secret }}'}}"),
    "a.yaml:3:22: steps[0].set.x: the template 'execution.secret' reads an unknown field; " +
    "an execution has id, workflow, event, headers, createdAt, startedAt",
  ],
};

for (const [name, [text, ...problems]] of Object.entries(REFUSED)) {
  Deno.test(`workflow file: ${name} is refused`, () => {
    const read = readWorkflowFile("a.yaml", text, ["OK"]);
    assertEquals(read.problems.map(problemText), problems);
    assertEquals(read.workflow, undefined);
  });
}

Deno.test("workflow file: the environment is not asked for a text that was in force before", () => {
  const text = steps("- {name: b, set: {x: '{{ env.GONE }}'}}");
  assertEquals(readWorkflowFile("a.yaml", text).problems, []);
});
