import { assertEquals } from "@std/assert";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { NOW, ran } from "../../harness/administration_fixture.ts";

const BODY = '{"event":"agent.reply.completed","data":{"text":"grüß dich"}}';
const SECRET = "whsec_c2VjcmV0";
const OTHER = "whsec_b3RoZXI=";
const SECONDS = NOW / 1_000;
const SIGNED = await signature(SECRET, new TextEncoder().encode(BODY));

interface Case {
  readonly name: string;
  readonly args: readonly string[];
  readonly body?: string;
  readonly code: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

const CASES: readonly Case[] = [
  {
    name: "a delivery as it came",
    args: [
      ...[
        "--secret",
        SECRET,
        "--header",
        `X-Svc-Signature: ${SIGNED}`,
        "--header",
        `x-svc-timestamp:${SECONDS}`,
      ],
      ...["--header", "X-Svc-Event: agent.reply.completed", "--header", "X-Svc-Delivery: 3b24"],
    ],
    code: 0,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z, event agent.reply.completed, delivery 3b24\n",
  },
  {
    name: "a delivery, as YAML",
    args: ["--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS}`, "--output", "yaml"],
    code: 0,
    stdout: 'verified: true\nsentAt: "2026-01-31T12:00:00.000Z"\n',
  },
  {
    name: "another secret, as YAML",
    args: ["--secret", OTHER, "--signature", SIGNED, "--timestamp", `${SECONDS}`, "--output", "yaml"],
    code: 1,
    stdout: "verified: false\nreason: wrong_signature\nmessage: the signature matches no secret\n",
  },
  {
    name: "the short flags",
    args: ["--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS - 300}`],
    code: 0,
    stdout: "verified: sent at 2026-01-31T11:55:00.000Z\n",
  },
  {
    name: "one of several secrets",
    args: ["--secret", OTHER, "--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS}`],
    code: 0,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z\n",
  },
  {
    name: "secrets of files",
    args: ["--secret-file", "FILE", "--signature", SIGNED, "--timestamp", `${SECONDS}`],
    code: 0,
    stdout: "verified: sent at 2026-01-31T12:00:00.000Z\n",
  },
  {
    name: "another body",
    args: ["--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS}`],
    body: `${BODY}\n`,
    code: 1,
    stderr: "not verified: the signature matches no secret\n",
  },
  {
    name: "another secret",
    args: ["--secret", OTHER, "--signature", SIGNED, "--timestamp", `${SECONDS}`],
    code: 1,
    stderr: "not verified: the signature matches no secret\n",
  },
  {
    name: "a timestamp of long ago",
    args: ["--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS - 301}`],
    code: 1,
    stderr: `not verified: the timestamp ${
      SECONDS - 301
    } is 301 seconds behind the clock; expected at most 300\n`,
  },
  {
    name: "a timestamp of long ago, with more tolerance",
    args: [
      "--secret",
      SECRET,
      "--signature",
      SIGNED,
      "--timestamp",
      `${SECONDS - 3_600}`,
      "--tolerance",
      "1h",
    ],
    code: 0,
    stdout: "verified: sent at 2026-01-31T11:00:00.000Z\n",
  },
  {
    name: "no timestamp",
    args: ["--secret", SECRET, "--signature", SIGNED],
    code: 1,
    stderr: "not verified: the header x-svc-timestamp is missing\n",
  },
  {
    name: "a signature that is there twice",
    args: [
      ...["--secret", SECRET, "--signature", SIGNED, "--timestamp", `${SECONDS}`],
      ...["--header", `X-Svc-Signature: ${SIGNED}`],
    ],
    code: 1,
    stderr: "not verified: the header x-svc-signature occurs more than once\n",
  },
];

for (const { name, args, body = BODY, code, stdout = "", stderr = "" } of CASES) {
  Deno.test(`weir webhooks verify: ${name}`, async () => {
    const file = await Deno.makeTempFile();
    try {
      await Deno.writeTextFile(file, `${OTHER}\n  ${SECRET}  \n\n`);
      const named = args.map((arg) => arg.replace("FILE", file));
      assertEquals(await ran(["webhooks", "verify", ...named], { stdin: body }), { code, stdout, stderr });
    } finally {
      await Deno.remove(file);
    }
  });
}

Deno.test("weir webhooks verify: a file of secrets that is missing", async () => {
  const { code, stderr } = await ran("webhooks verify --secret-file /no/such/file");
  const text = "Cannot read \"/no/such/file\": No such file or directory (os error 2): open '/no/such/file'\n";
  assertEquals([code, stderr], [1, text]);
});
