import { assertEquals } from "#assert";
import { challengeOfBody, challengeOfQuery } from "../../../../src/webhooks/model/challenge.ts";

type Provider = Parameters<typeof challengeOfQuery>[0];

const LONG = "x".repeat(1_024);

/** Queries by provider, and the text that is returned. */
const QUERIES: readonly (readonly [Provider, string, string | undefined])[] = [
  ["meta", "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=t", "1158201444"],
  ["meta", "hub.challenge=1158201444&hub.verify_token=t", undefined],
  ["meta", "hub.mode=unsubscribe&hub.challenge=1", undefined],
  ["meta", "hub.mode=subscribe&hub.challenge=1&hub.challenge=2", undefined],
  ["meta", "hub.mode=subscribe&hub.mode=subscribe&hub.challenge=1", undefined],
  ["meta", "challenge=1", undefined],
  ["dropbox", "challenge=abc123", "abc123"],
  ["dropbox", "challenge=", undefined],
  ["dropbox", "", undefined],
  ["dropbox", `challenge=${LONG}`, LONG],
  ["dropbox", `challenge=${LONG}x`, undefined],
  ["dropbox", "challenge=a%0d%0ab", undefined],
  ["dropbox", "challenge=%00", undefined],
  ["dropbox", "challenge=%C3%A9", undefined],
  ["microsoft", "validationToken=Validation%3A+Testing+client", "Validation: Testing client"],
  ["microsoft", "validationtoken=a", undefined],
  ["slack", "challenge=a&validationToken=b&hub.mode=subscribe&hub.challenge=c", undefined],
  ["zoom", "challenge=a", undefined],
];

/** Bodies by provider; `false` for a call that is no check, nothing for a check that is not answered. */
const BODIES: readonly (readonly [Provider, string, string | undefined | false])[] = [
  ["slack", '{"token":"t","challenge":"3eZbrw1aB10","type":"url_verification"}', "3eZbrw1aB10"],
  ["slack", '{"challenge":"a","type":"event_callback"}', false],
  ["slack", '{"type":"url_verification"}', undefined],
  ["slack", '{"challenge":["a"],"type":"url_verification"}', undefined],
  ["slack", `{"challenge":"${LONG}x","type":"url_verification"}`, undefined],
  ["slack", '{"challenge":"\\u2028","type":"url_verification"}', undefined],
  [
    "zoom",
    '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}',
    "qgg8vlvZRS6UYooatFL8Aw",
  ],
  ["zoom", '{"event":"meeting.started","payload":{"plainToken":"a"}}', false],
  ["zoom", '{"event":"endpoint.url_validation"}', undefined],
  ["zoom", '{"event":"endpoint.url_validation","payload":{"plainToken":"v0:1700000000:{}"}}', undefined],
  ["zoom", `{"event":"endpoint.url_validation","payload":{"plainToken":"${"x".repeat(129)}"}}`, undefined],
  ["zoom", '{"challenge":"a","type":"url_verification"}', false],
  ["meta", '{"challenge":"a","type":"url_verification"}', false],
  ["discord", '{"id":"1","application_id":"2","token":"t","type":1,"version":1}', '{"type":1}'],
  ["discord", '{"version":1,"application_id":"2","type":0}', ""],
  ["discord", '{"version":1,"application_id":"2","type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}', false],
  ["discord", '{"type":2,"data":{"name":"ask"}}', false],
  ["discord", '{"type":"1"}', false],
  ["discord", '{"type":null}', false],
  ["discord", '{"type":[1]}', false],
  ["discord", "{}", false],
];

Deno.test("challenges: a query is a check of its provider only, and the text is short and plain", () => {
  for (const [provider, query, expected] of QUERIES) {
    const text = challengeOfQuery(provider, new URLSearchParams(query));
    assertEquals(text, expected, `${provider} ${query}`.slice(0, 100));
  }
});

Deno.test("challenges: a body is a check of its provider only", () => {
  for (const [provider, body, expected] of BODIES) {
    const check = challengeOfBody(provider, JSON.parse(body));
    assertEquals(check === undefined ? false : check.text, expected, `${provider} ${body}`.slice(0, 100));
  }
});
