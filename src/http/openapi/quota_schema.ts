import {
  choiceSchema,
  flagSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";

function rate(description: string): JsonSchema {
  return { type: "number", description };
}

/** Schemas of buckets of quotas, by name. */
export const QUOTA_SCHEMAS: SchemaProperties = {
  Quota: objectSchema({
    domain: textSchema("The domain."),
    bucket: listSchema(
      objectSchema({ key: textSchema("The key."), value: textSchema("The value.") }),
      "The pairs, in the order of the rule.",
    ),
    limit: objectSchema({
      kind: choiceSchema(
        ["allow", "deny", "rate", "impossible"],
        "`impossible` for a limit of requests in flight.",
      ),
    }, {
      perSecond: rate("Requests per second of all clients."),
      burst: integerSchema("Most requests that pass together after a pause."),
      isPerSecond: flagSchema("Whether the unit of the rule is a second."),
      shadowPerSecond: rate("Rate of a rule in shadow mode."),
    }),
    demand: rate("Requests per second of all clients and buckets with the same quota."),
    clientCount: integerSchema("Number of clients, with those that are not shown."),
    clients: listSchema(
      objectSchema({
        isConnected: flagSchema("Whether its stream is open."),
        demand: rate("Requests per second, as last reported."),
        assignment: choiceSchema(
          ["allow", "deny", "tokens", "none"],
          "The last assignment, unless it has expired.",
        ),
        secondsSinceReport: rate("Age of its last report."),
        why: textSchema("What happens to its requests, and the reason."),
      }, {
        name: textSchema("The name that the client sends; absent without one."),
        share: rate("Requests per second; absent if all are allowed."),
        inForce: rate("The largest share that it may still use; absent if all may pass."),
      }),
      "The clients.",
    ),
  }, {
    rule: textSchema("The rule; absent if none matches."),
    part: rate("The part of this instance in the limit; absent if it has all of it."),
    inForce: rate("Requests per second that all shares together may let pass; absent if all may pass."),
    why: textSchema("Why no client is shown, or some are missing; absent otherwise."),
  }),
};

/** A bucket with one client. */
export const QUOTA_EXAMPLE = {
  domain: "shop",
  bucket: [{ key: "account", value: "acme" }],
  rule: "shop.account_acme",
  limit: { kind: "rate", perSecond: 50, burst: 50, isPerSecond: true },
  demand: 12.5,
  inForce: 50,
  clientCount: 1,
  clients: [{
    name: "envoy-1",
    isConnected: true,
    demand: 12.5,
    assignment: "tokens",
    share: 50,
    inForce: 50,
    secondsSinceReport: 2.1,
    why: "within its share",
  }],
};
