import { assertEquals } from "#assert";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { NOW, ran } from "../../harness/administration_fixture.ts";

const BODY = '{"event":"agent.reply.completed","data":{"text":"grüß dich"}}';
const SECRET = "whsec_c2VjcmV0";
const OTHER = "whsec_b3RoZXI=";
const SECONDS = NOW / 1_000;
const SIGNED = await signature(SECRET, new TextEncoder().encode(BODY));
const SIGNED_NOW = `--secret ${SECRET} --signature ${SIGNED} --timestamp`;

interface Case {
  readonly args: string;
  readonly body?: string;
  readonly code?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "a delivery as it came": {
    args: `--secret ${SECRET} --header 'X-Svc-Signature: ${SIGNED}' --header x-svc-timestamp:${SECONDS} \
      --header 'X-Svc-Event: agent.reply.completed' --header 'X-Svc-Delivery: 3b24'`,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z, event agent.reply.completed, delivery 3b24\n",
  },
  "a delivery, as YAML": {
    args: `${SIGNED_NOW} ${SECONDS} --output yaml`,
    stdout: 'verified: true\nsentAt: "2026-01-31T12:00:00.000Z"\n',
  },
  "another secret, as YAML": {
    args: `--secret ${OTHER} --signature ${SIGNED} --timestamp ${SECONDS} --output yaml`,
    code: 1,
    stdout: "verified: false\nreason: wrong_signature\nmessage: the signature matches no secret\n",
  },
  "the short flags": {
    args: `${SIGNED_NOW} ${SECONDS - 300}`,
    stdout: "verified: sent at 2026-01-31T11:55:00.000Z\n",
  },
  "one of several secrets": {
    args: `--secret ${OTHER} ${SIGNED_NOW} ${SECONDS}`,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z\n",
  },
  "secrets of files": {
    args: `--secret-file FILE --signature ${SIGNED} --timestamp ${SECONDS}`,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z\n",
  },
  "another body": {
    args: `${SIGNED_NOW} ${SECONDS}`,
    body: `${BODY}\n`,
    code: 1,
    stderr: "not verified: the signature matches no secret\n",
  },
  "another secret": {
    args: `--secret ${OTHER} --signature ${SIGNED} --timestamp ${SECONDS}`,
    code: 1,
    stderr: "not verified: the signature matches no secret\n",
  },
  "a timestamp of long ago": {
    args: `${SIGNED_NOW} ${SECONDS - 301}`,
    code: 1,
    stderr: `not verified: the timestamp ${
      SECONDS - 301
    } is 301 seconds behind the clock; expected at most 300\n`,
  },
  "a timestamp of long ago, with more tolerance": {
    args: `${SIGNED_NOW} ${SECONDS - 3_600} --tolerance 1h`,
    stdout: "verified: sent at 2026-01-31T11:00:00.000Z\n",
  },
  "no timestamp": {
    args: `--secret ${SECRET} --signature ${SIGNED}`,
    code: 1,
    stderr: "not verified: the header x-svc-timestamp is missing\n",
  },
  "a signature that is there twice": {
    args: `${SIGNED_NOW} ${SECONDS} --header 'X-Svc-Signature: ${SIGNED}'`,
    code: 1,
    stderr: "not verified: the header x-svc-signature occurs more than once\n",
  },
};

for (const [name, { args, body = BODY, code = 0, stdout = "", stderr = "" }] of Object.entries(CASES)) {
  Deno.test(`weir webhooks verify: ${name}`, async () => {
    const file = await Deno.makeTempFile();
    try {
      await Deno.writeTextFile(file, `${OTHER}\n  ${SECRET}  \n\n`);
      const line = `webhooks verify ${args.replace("FILE", file)}`;
      assertEquals(await ran(line, { stdin: body }), { code, stdout, stderr });
    } finally {
      await Deno.remove(file);
    }
  });
}

Deno.test("weir webhooks verify: a file of secrets that is missing", async () => {
  const { code, stderr } = await ran("webhooks verify --secret-file /no/such/file");
  const text =
    "Cannot read \"/no/such/file\": No such file or directory (os error 2): open '/no/such/file'\n";
  assertEquals([code, stderr], [2, text]);
});
