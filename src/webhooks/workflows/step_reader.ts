import { described, shown } from "../../yaml/scalar.ts";
import type { YamlValue } from "../../yaml/value.ts";
import type { LimitStep, RequestStep, StepRetry, WorkflowStep } from "../model/workflow.ts";
import { WorkflowFields } from "./fields.ts";
import { parseUrl } from "./url.ts";
import { isJsonType } from "../../base/body_text.ts";
import { readValue, type ValueReading } from "./value.ts";

const KINDS = ["request", "limit", "set"] as const;
const REQUEST_KEYS = ["method", "url", "headers", "query", "form", "body", "timeout"] as const;
const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] as const;
const WITHOUT_BODY: readonly string[] = ["GET", "HEAD"];
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Set by Weir or by the connection. */
const OWN_HEADERS =
  ("host content-length idempotency-key connection keep-alive transfer-encoding te trailer upgrade " +
    "expect proxy-authorization proxy-connection").split(" ");
const FORM_TYPE = /^application\/x-www-form-urlencoded(?:\s*;.*)?$/i;
const MAX_ENTRIES = 100;

/** Reads one step; nothing where it is none. */
export function readStep(
  fields: WorkflowFields,
  name: string,
  reading: ValueReading,
): WorkflowStep | undefined {
  const kinds = KINDS.filter((kind) => fields.has(kind));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    fields.error("", `a step has one of ${KINDS.join(", ")}; this one has ${kinds.join(" and ") || "none"}`);
    return undefined;
  }
  if (kind !== "request" && fields.has("retry")) {
    fields.error("retry", "only a step with a request can be retried; remove it");
  }
  switch (kind) {
    case "request":
      return readRequest(fields, name, reading);
    case "limit":
      return readLimit(fields, name, reading);
    case "set": {
      const mapping = fields.mapping("set");
      if (mapping === undefined) return undefined;
      return { kind: "set", name, value: readValue(mapping, fields.pathOf("set"), reading) };
    }
  }
}

function readRequest(step: WorkflowFields, name: string, reading: ValueReading): RequestStep | undefined {
  const mapping = step.mapping("request");
  const retry = readRetry(step, reading);
  if (mapping === undefined) return undefined;
  const fields = new WorkflowFields(reading.log, mapping, step.pathOf("request"), REQUEST_KEYS);
  const bodyValue = fields.value("body");
  const isForm = fields.has("form");
  const defaultMethod = bodyValue === undefined && !isForm ? "GET" : "POST";
  const method = fields.has("method") ? fields.choice("method", METHODS) : defaultMethod;
  for (const key of ["body", "form"]) {
    if (!fields.has(key) || !WITHOUT_BODY.includes(method)) continue;
    fields.error(key, `a ${method} request has no body; remove it, or write another method`);
  }
  if (isForm && bodyValue !== undefined) fields.error("form", "a request has a body or a form; keep one");
  const url = readUrl(fields, reading);
  const seen = new Set<string>();
  const headers = fields.templates(
    "headers",
    reading.read,
    (name, text) => headerProblem(name, text, { seen, isForm }),
  );
  const query = fields.parameters("query", reading.read);
  const form = isForm ? { form: fields.parameters("form", reading.read) } : {};
  const body = bodyValue === undefined ? undefined : readValue(bodyValue, fields.pathOf("body"), reading);
  const timeoutMs = fields.duration("timeout", { min: "1ms", max: "15m", absent: "10s" });
  if (url === undefined) return undefined;
  return { kind: "request", name, method, url, headers, query, ...form, body, timeoutMs, retry };
}

function readRetry(step: WorkflowFields, { log }: ValueReading): StepRetry {
  const mapping = step.mapping("retry");
  if (mapping === undefined) return { attempts: 1, backoffMs: 1_000 };
  const fields = new WorkflowFields(log, mapping, step.pathOf("retry"), ["attempts", "backoff"]);
  return {
    attempts: fields.count("attempts", { min: 1, max: 100, absent: 3 }),
    backoffMs: fields.duration("backoff", { min: "1ms", max: "1h", absent: "1s" }),
  };
}

function readUrl(fields: WorkflowFields, { read }: ValueReading): RequestStep["url"] | undefined {
  if (!fields.has("url")) {
    fields.error("url", "there is no url; add one such as https://host/path");
    return undefined;
  }
  const text = fields.text("url");
  if (text === undefined) return undefined;
  const { url, problem } = parseUrl(text);
  if (url === undefined) {
    fields.error("url", problem);
    return undefined;
  }
  read(text, fields.value("url")?.offset ?? 0, fields.pathOf("url"));
  return url;
}

function headerProblem(
  name: string,
  text: string,
  { seen, isForm }: { readonly seen: Set<string>; readonly isForm: boolean },
): string | undefined {
  const lower = name.toLowerCase();
  const isRepeated = seen.has(lower);
  seen.add(lower);
  if (!TOKEN.test(name)) return `'${shown(name)}' is not a valid header name; write letters, digits and -`;
  if (OWN_HEADERS.includes(lower)) return `the header ${name} is set by Weir; remove it`;
  if (isRepeated) return `the header ${name} is given twice; keep one`;
  if (lower === "content-type" && isForm && !FORM_TYPE.test(text)) {
    return "a form is sent as application/x-www-form-urlencoded; write this content type, or remove it";
  }
  if (lower === "content-type" && !isForm && !isJsonType(text)) {
    return "a body is sent as JSON; write a content type such as application/json, or remove it";
  }
  if (/[\r\n\0]/.test(text)) return "a header cannot hold a line break; write one line";
  return undefined;
}

function readLimit(step: WorkflowFields, name: string, reading: ValueReading): LimitStep | undefined {
  const mapping = step.mapping("limit");
  if (mapping === undefined) return undefined;
  const path = step.pathOf("limit");
  const fields = new WorkflowFields(reading.log, mapping, path, ["domain", "descriptors", "onOver"]);
  const domain = fields.name("domain", /^(?!.*\{\{).+$/s, "the name of a domain, without templates") ?? "";
  const list = fields.list("descriptors");
  if (!fields.has("descriptors") || list?.items.length === 0) {
    fields.error("descriptors", "there are no descriptors; add a list such as [{ customer: acme }]");
  }
  if ((list?.items.length ?? 0) > MAX_ENTRIES) {
    fields.error("descriptors", `there are more than ${MAX_ENTRIES} descriptors; use fewer`);
  }
  const descriptors = (list?.items ?? []).slice(0, MAX_ENTRIES).map((item, index) =>
    readDescriptor(item, `${fields.pathOf("descriptors")}[${index}]`, reading)
  );
  return { kind: "limit", name, domain, descriptors, onOver: fields.choice("onOver", ["fail", "wait"]) };
}

function readDescriptor(
  item: YamlValue,
  path: string,
  reading: ValueReading,
): LimitStep["descriptors"][number] {
  const { log, read } = reading;
  if (item.kind === "broken") return [];
  const size = item.kind === "mapping" ? item.entries.size : 0;
  if (item.kind !== "mapping" || size === 0 || size > MAX_ENTRIES) {
    const found = item.kind === "mapping" ? `one of ${size} keys` : described(item);
    log.error(item.offset, path, `expected a mapping of 1 to ${MAX_ENTRIES} keys, got ${found}`);
    return [];
  }
  return [...item.entries].flatMap(([key, { offset, value }]) => {
    const below = `${path}.${shown(key)}`;
    if (key.includes("{{")) log.error(offset, below, "a key cannot contain a template; write a name");
    if (value.kind === "scalar") {
      const template = read(value.text, value.offset, below);
      return template === undefined ? [] : [[key, template] as const];
    }
    if (value.kind !== "broken") {
      log.error(value.offset, below, `expected a text, got ${described(value)}`);
    }
    return [];
  });
}
