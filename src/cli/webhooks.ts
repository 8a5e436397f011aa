import type { CommandFlag, RunnableCommand } from "./command.ts";

const SECRET_FLAGS: Readonly<Record<string, CommandFlag>> = {
  secret: { value: "SECRET", doc: "signing secret of the endpoint", repeated: true },
  "secret-file": { value: "FILE", doc: "file of signing secrets, one per line", repeated: true },
  tolerance: { value: "DURATION", doc: "allowed difference between timestamp and clock (default 5m)" },
};

/** `weir webhooks …`: the receiver's side. */
export const WEBHOOKS_COMMANDS: readonly RunnableCommand[] = [
  {
    command: {
      words: "webhooks verify",
      args: [],
      doc: "verify the signature and the timestamp of a delivery, with its body on standard input",
      flags: {
        ...SECRET_FLAGS,
        header: { value: "'NAME: VALUE'", doc: "header of the delivery", repeated: true },
        timestamp: { value: "SECONDS", doc: "the same as --header 'X-Svc-Timestamp: SECONDS'" },
        signature: { value: "SIGNATURE", doc: "the same as --header 'X-Svc-Signature: SIGNATURE'" },
      },
      notes: "exit code: 0 verified, 1 not verified\n\n" +
        "Example: weir webhooks verify --secret-file secret --header 'X-Svc-Signature: sha256=…' \\\n" +
        "  --timestamp 1767225600 < body.json",
    },
    async run(given, options) {
      const { verifyInput } = await import("./webhooks_verify.ts");
      return await verifyInput(given, options);
    },
  },
  {
    command: {
      words: "webhooks listen",
      args: [],
      doc: "receive deliveries on this machine, print and verify them until interrupted",
      flags: {
        port: { value: "N", doc: "port of 127.0.0.1 (default 9000; 0 for a free one)" },
        ...SECRET_FLAGS,
        fail: {
          value: "HOW[:N]",
          doc: "answer a status such as 503, or timeout (never), or reset; N: how many times",
          repeated: true,
        },
      },
      notes:
        "Then it answers 200. The service sends to this machine only with 127.0.0.0/8 in WEBHOOK_ALLOW_CIDRS.\n\n" +
        "Example: weir webhooks listen --secret-file secret --fail 503:2 --fail timeout:1",
    },
    async run(given, options) {
      const { listen } = await import("./webhooks_listen.ts");
      return await listen(given, options);
    },
  },
];
