/** Messages of Amazon SNS to a trigger, with certificates of an authority of the test. */
import { assertEquals } from "#assert";
import { createSign } from "node:crypto";
import { findExecution, listExecutions } from "../../../src/webhooks/store/operations/executions.ts";
import { type CertificateFiles, makeCertificates, pairOf } from "../../harness/certificates.ts";
import { needing } from "../../harness/tools.ts";
import { WebhookBed } from "../../harness/webhook_service_fixture.ts";

const TOPIC = "arn:aws:sns:us-east-1:123456789012:orders";
const HOST = "https://sns.us-east-1.amazonaws.com";
const CERTIFICATE = `${HOST}/SimpleNotificationService-0123456789abcdef.pem`;
const TOKEN = "2336412f37fb687f5d51e6e2425ba1f3";
const SUBSCRIBE = `${HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=${TOKEN}`;

type Fields = Readonly<Record<string, unknown>>;

/** The hosts of Amazon. */
class Amazon {
  readonly asked: string[] = [];
  readonly pages = new Map<string, () => Response | Promise<Response>>();
  keyFile = "";

  readonly fetch = async (input: string | URL | Request): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    this.asked.push(url);
    return await this.pages.get(url)?.() ?? new Response(null, { status: 404 });
  };

  /** Signs with the key of a certificate, which is then at the URL. */
  async serve(files: CertificateFiles, url = CERTIFICATE): Promise<void> {
    const { cert, key } = await pairOf(files);
    this.keyFile = key;
    this.pages.set(url, () => new Response(cert));
  }

  /** The body of a signed message. */
  message(bed: WebhookBed, fields: Fields = {}, changed: Fields = {}): string {
    const message: Record<string, unknown> = {
      Type: "Notification",
      MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
      TopicArn: TOPIC,
      Message: '{"id":"1001","total":12345678901234567890}',
      Timestamp: new Date(bed.clock.now()).toISOString(),
      SignatureVersion: "2",
      SigningCertURL: CERTIFICATE,
      ...fields,
    };
    const names = [
      "Message",
      "MessageId",
      "Subject",
      "SubscribeURL",
      "Timestamp",
      "Token",
      "TopicArn",
      "Type",
    ];
    const text = names.flatMap((name) => message[name] === undefined ? [] : [`${name}\n${message[name]}\n`]);
    const signer = createSign(message["SignatureVersion"] === "1" ? "sha1" : "sha256").update(text.join(""));
    const Signature = signer.sign(this.keyFile, "base64");
    return JSON.stringify({
      ...message,
      Signature,
      UnsubscribeURL: `${HOST}/?Action=Unsubscribe`,
      ...changed,
    });
  }

  confirmation(bed: WebhookBed, fields: Fields = {}): string {
    const text = "You have chosen to subscribe to the topic.\nTo confirm, visit the SubscribeURL.";
    const asked = { Type: "SubscriptionConfirmation", Message: text, SubscribeURL: SUBSCRIBE, Token: TOKEN };
    return this.message(bed, { ...asked, ...fields });
  }
}

/** The media type of Amazon SNS, which is not that of the body. */
const TEXT = { "content-type": "text/plain; charset=UTF-8" };

async function post(bed: WebhookBed, body: string, headers: Readonly<Record<string, string>> = {}) {
  const answer = await bed.startSigned({ ...TEXT, ...headers }, body);
  return {
    ...answer,
    result: answer.body?.code ?? (answer.body?.executionId === undefined ? "" : "started"),
  };
}

async function countOf(bed: WebhookBed): Promise<number> {
  return (await bed.store.read(listExecutions, { limit: 100 })).items.length;
}

async function opened(fields: Fields = {}) {
  await using stack = new AsyncDisposableStack();
  const amazon = new Amazon();
  const bed = stack.use(await WebhookBed.open({ parts: { providerFetch: amazon.fetch } }));
  const certificates = stack.use(await makeCertificates());
  await amazon.serve(await certificates.issue("sns", { names: "DNS:sns.amazonaws.com", rsaBits: 2_048 }));
  // The certificates are valid from now on.
  bed.clock.advance(Date.now() - bed.clock.now());
  await bed.trigger({ verify: { scheme: "sns", topics: [TOPIC] }, ...fields });
  const closing = stack.move();
  return { amazon, bed, certificates, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

needing("openssl").test(
  "sns: a notification starts the workflow once, with the message as input",
  async () => {
    await using open = await opened({ passHeaders: ["x-amz-sns-topic-arn"] });
    const { amazon, bed } = open;
    const first = await post(bed, amazon.message(bed), { "x-amz-sns-topic-arn": TOPIC });
    assertEquals([first.status, first.result], [202, "started"]);
    const found = await bed.store.read(findExecution, first.body.executionId);
    assertEquals([found?.execution.input, found?.execution.headers], [
      '{"id":"1001","total":12345678901234567890}',
      JSON.stringify({ "x-amz-sns-topic-arn": TOPIC }),
    ]);
    const again = await post(bed, amazon.message(bed));
    assertEquals([again.body.executionId, again.headers["idempotency-replayed"]], [
      first.body.executionId,
      "true",
    ]);
    const inputs: readonly (readonly [message: string, input: string])[] = [
      ["Hello world!\nMessageId\nx", '{"body":"Hello world!\\nMessageId\\nx"}'],
      ["[1,2]", '{"body":"[1,2]"}'],
      ["{no json}", '{"body":"{no json}"}'],
      ["", '{"body":""}'],
      ["é😀", '{"body":"é😀"}'],
    ];
    for (const [index, [Message, input]] of inputs.entries()) {
      const Subject = index === 0 ? "My First Message" : undefined;
      const answer = await post(bed, amazon.message(bed, { MessageId: `m-${index}`, Message, Subject }));
      const one = await bed.store.read(findExecution, answer.body.executionId);
      assertEquals(one?.execution.input, input);
    }
    assertEquals(amazon.asked, [CERTIFICATE]);
    assertEquals(await countOf(bed), 1 + inputs.length);
  },
);

needing("openssl").test("sns: SHA-1 is accepted with a warning, and repeated calls for an hour", async () => {
  await using open = await opened();
  const { amazon, bed } = open;
  const old = amazon.message(bed, { SignatureVersion: "1" });
  bed.clock.advance(3_600_000);
  assertEquals((await post(bed, old)).result, "started");
  assertEquals(
    bed.log.filter((line) => line.includes("Weak signature of a trigger call accepted")).length,
    1,
  );
  bed.clock.advance(1_000);
  assertEquals((await post(bed, old)).status, 401);
});

needing("openssl").test(
  "sns: a subscription to a listed topic is confirmed once, and nothing starts",
  async () => {
    await using open = await opened();
    const { amazon, bed } = open;
    const body = amazon.confirmation(bed);
    const failures = [
      () => new Response(null, { status: 500 }),
      () => new Response(null, { status: 403 }),
      () => Promise.reject(new TypeError(`cannot connect to ${SUBSCRIBE}`)),
    ];
    for (const failure of failures) {
      amazon.pages.set(SUBSCRIBE, failure);
      bed.clock.advance(1_000);
      assertEquals((await post(bed, body)).result, "sender_unavailable");
    }
    amazon.pages.set(SUBSCRIBE, () => new Response("<ConfirmSubscriptionResponse/>"));
    const answers = await Promise.all([post(bed, body), post(bed, body)]);
    assertEquals([...answers, await post(bed, body)].map(({ status, result }) => [status, result]), [
      [200, ""],
      [200, ""],
      [200, ""],
    ]);
    assertEquals(amazon.asked, [CERTIFICATE, ...failures.map(() => SUBSCRIBE), SUBSCRIBE]);
    assertEquals(bed.log.filter((line) => line.includes("Subscription of a trigger confirmed")).length, 1);
    const ended = await post(
      bed,
      amazon.confirmation(bed, { Type: "UnsubscribeConfirmation", MessageId: "m-2" }),
    );
    assertEquals([ended.status, ended.body as object], [200, {}]);
    assertEquals(amazon.asked.length, 5);
    assertEquals(bed.log.filter((line) => line.includes("Subscription of a trigger ended")).length, 1);
    assertEquals(await countOf(bed), 0);
    assertEquals(bed.log.filter((line) => line.includes(TOKEN)), []);
  },
);

/** Bodies that are refused, and the reason in the log; none of them causes a request. */
const FORGED: Readonly<
  Record<string, readonly [(amazon: Amazon, bed: WebhookBed) => string, reason: string]>
> = {
  "no JSON": [() => "hello", "the body does not have the form that the scheme requires"],
  "a list": [() => "[]", "the body does not have the form that the scheme requires"],
  "raw delivery": [() => '{"id":"1001"}', "the body does not have the form that the scheme requires"],
  "another type": [
    (amazon, bed) => amazon.message(bed, { Type: "notification" }),
    "the body does not have the form that the scheme requires",
  ],
  "another version": [
    (amazon, bed) => amazon.message(bed, { SignatureVersion: "3" }),
    "the body does not have the form that the scheme requires",
  ],
  "a line break in a field": [
    (amazon, bed) => amazon.message(bed, { Subject: "a\nTimestamp\nb" }),
    "the body does not have the form that the scheme requires",
  ],
  "a list as a field": [
    (amazon, bed) => amazon.message(bed, {}, { MessageId: ["a"] }),
    "the body does not have the form that the scheme requires",
  ],
  "a time without a zone": [
    (amazon, bed) => amazon.message(bed, { Timestamp: "2026-01-01 12:00:00" }),
    "the body does not have the form that the scheme requires",
  ],
  "a foreign topic": [
    (amazon, bed) => amazon.message(bed, { TopicArn: `${TOPIC}x` }),
    "the trigger does not list the topic of the message",
  ],
  "a topic of another region": [
    (amazon, bed) => amazon.message(bed, { TopicArn: TOPIC.replace("us-east-1", "us-west-2") }),
    "the trigger does not list the topic of the message",
  ],
  ...Object.fromEntries(
    [
      "https://evil.test/SimpleNotificationService-0123456789abcdef.pem",
      "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com@evil.test/SimpleNotificationService-0123456789abcdef.pem",
      "https://user@sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com.evil.test/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com.cn/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns-us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://bucket.s3.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://SNS.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com/../SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com/a/SimpleNotificationService-0123456789abcdef.pem",
      "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-../a.pem",
      "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem?next=https://evil.test/",
      "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem#.pem",
      "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
      "https://sns.us-east-1.amazonaws.com\\@evil.test/SimpleNotificationService-0123456789abcdef.pem",
      "https://169.254.169.254/SimpleNotificationService-0123456789abcdef.pem",
      "",
    ].map((SigningCertURL) => [
      `the certificate at ${SigningCertURL}`,
      [
        (amazon: Amazon, bed: WebhookBed) => amazon.message(bed, { SigningCertURL }),
        "a URL of the message is not that of Amazon SNS in the region of the topic",
      ] as const,
    ]),
  ),
};

needing("openssl").test("sns: a forged message is refused, and requests nothing", async () => {
  await using open = await opened();
  const { amazon, bed } = open;
  for (const [what, [bodyOf, reason]] of Object.entries(FORGED)) {
    bed.clock.advance(2_000);
    bed.log.length = 0;
    const { status, result } = await post(bed, bodyOf(amazon, bed));
    assertEquals([status, result], [401, "unauthorized"], what);
    assertEquals(bed.log.filter((line) => line.includes(reason)).length, 1, `${what}: ${bed.log.join("\n")}`);
  }
  assertEquals(amazon.asked, []);
  assertEquals(await countOf(bed), 0);
});

needing("openssl").test(
  "sns: a wrong signature, and a URL that confirms something else, are refused",
  async () => {
    await using open = await opened();
    const { amazon, bed } = open;
    amazon.pages.set(SUBSCRIBE, () => new Response("ok"));
    const signed = amazon.message(bed);
    const confirming = (SubscribeURL: string) => amazon.confirmation(bed, { SubscribeURL });
    const bodies = [
      amazon.message(bed, {}, { Message: "another message" }),
      amazon.message(bed, {}, { MessageId: "another-id" }),
      amazon.message(bed, {}, { Subject: "another subject" }),
      amazon.message(bed, {}, { Timestamp: new Date(bed.clock.now() + 1).toISOString() }),
      amazon.message(bed, { SignatureVersion: "1" }, { SignatureVersion: "2" }),
      amazon.message(bed, {}, { Signature: btoa("x".repeat(256)) }),
      amazon.message(bed, {}, { Signature: btoa("x") }),
      signed.replace("Notification", "UnsubscribeConfirmation"),
      ...[
        SUBSCRIBE.replace(HOST, "https://evil.test"),
        SUBSCRIBE.replace(HOST, "https://sns.us-east-1.amazonaws.com.evil.test"),
        SUBSCRIBE.replace(HOST, "https://sns.us-west-2.amazonaws.com"),
        SUBSCRIBE.replace(HOST, `${HOST}:444`),
        SUBSCRIBE.replace("https://", "https://user:password@"),
        SUBSCRIBE.replace("https://", "http://"),
        SUBSCRIBE.replace("ConfirmSubscription", "Unsubscribe"),
        SUBSCRIBE.replace(TOPIC, `${TOPIC}x`),
        SUBSCRIBE.replace(TOKEN, "another"),
        `${SUBSCRIBE}&TopicArn=${TOPIC}x`,
        `${SUBSCRIBE}&AuthenticateOnUnsubscribe=true`,
        `${SUBSCRIBE}#x`,
        CERTIFICATE,
      ].map(confirming),
      amazon.confirmation(bed, { Token: "", SubscribeURL: SUBSCRIBE.replace(TOKEN, "") }),
    ];
    for (const body of bodies) assertEquals((await post(bed, body)).status, 401, body);
    assertEquals(amazon.asked, [CERTIFICATE]);
    assertEquals(await countOf(bed), 0);
    assertEquals((await post(bed, signed)).result, "started");
  },
);

needing("openssl").test(
  "sns: only a valid certificate of Amazon SNS is used, and nothing else is kept",
  async () => {
    await using open = await opened();
    const { amazon, bed, certificates } = open;
    const names = "DNS:sns.amazonaws.com";
    const issue = (name: string, options: Parameters<typeof certificates.issue>[1]) =>
      certificates.issue(name, options);
    const refused: Readonly<Record<string, CertificateFiles>> = {
      "another name": await issue("other", { names: "DNS:sqs.amazonaws.com", rsaBits: 2_048 }),
      "an expired one": await issue("expired", { names, rsaBits: 2_048, isExpired: true }),
      "one of later": await issue("later", { names, rsaBits: 2_048, dates: ["20400101", "20410101"] }),
      "a short key": await issue("short", { names, rsaBits: 1_024 }),
      "another algorithm": await issue("curve", { names }),
    };
    for (const [what, files] of Object.entries(refused)) {
      bed.clock.advance(60_000);
      await amazon.serve(files);
      assertEquals((await post(bed, amazon.message(bed))).status, 401, what);
    }
    assertEquals(amazon.asked.length, Object.keys(refused).length);
    const good = await issue("good", { names: "DNS:sns-signing.us-east-1.amazonaws.com", rsaBits: 2_048 });
    const [leaf, issuer, other] = await Promise.all(
      [good, certificates.authority, certificates.otherAuthority].map(async (one) =>
        (await pairOf(one)).cert
      ),
    );
    await amazon.serve(good);
    const pages: Readonly<Record<string, [() => Response | Promise<Response>, status: number]>> = {
      "a redirect": [
        () => new Response(null, { status: 302, headers: { location: "https://evil.test/" } }),
        401,
      ],
      "no certificate": [() => new Response("<html>"), 401],
      "a broken certificate": [() => new Response(String(leaf).replace(/[A-Z]{3}/, "AAA")), 401],
      "a chain that does not hold": [() => new Response(`${leaf}${other}`), 401],
      "too many certificates": [() => new Response(`${leaf}`.repeat(5)), 401],
      "a large page": [() => new Response(`${leaf}${" ".repeat(16_384)}`), 503],
      "an error": [() => new Response(null, { status: 500 }), 503],
      "a broken connection": [() => Promise.reject(new TypeError("reset")), 503],
      "a chain": [() => new Response(`${leaf}${issuer}`), 202],
    };
    for (const [what, [page, status]] of Object.entries(pages)) {
      bed.clock.advance(60_000);
      amazon.pages.set(CERTIFICATE, page);
      assertEquals(
        (await post(bed, amazon.message(bed, { MessageId: what.replaceAll(" ", "-") }))).status,
        status,
        what,
      );
    }
    const before = amazon.asked.length;
    for (let n = 0; n < 12; n++) {
      const SigningCertURL = CERTIFICATE.replace("0123", `${n}`);
      const { status } = await post(bed, amazon.message(bed, { SigningCertURL }));
      assertEquals(status, n < 9 ? 401 : 503, `${n}`);
    }
    assertEquals(amazon.asked.length - before, 9);
    assertEquals((await post(bed, amazon.message(bed, { MessageId: "known" }))).result, "started");
    assertEquals(amazon.asked.some((url) => url.includes("evil")), false);
  },
);
