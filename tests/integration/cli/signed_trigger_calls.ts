/** Command lines about signed triggers, and the call of the administration that each makes. */
export function signedTriggerCalls(id: string) {
  return [
    {
      args: ["triggers", "create", "hub", "--workflow", "w", "--verify", "github"],
      call: "POST /triggers",
      body: '{"name":"hub","workflow":"w","verify":{"scheme":"github"}}',
    },
    {
      args: [
        ...["triggers", "create", "t", "--workflow", "w", "--verify", "hmac-sha256", "--secret-file", "-"],
        ...["--signature-header", "X-Sign", "--signature-prefix", "v1=", "--signature-encoding", "base64"],
        ...["--timestamp-header", "X-Time", "--tolerance", "1m30s", "--delivery-id-header", "X-Id"],
      ],
      call: "POST /triggers",
      body: '{"name":"t","workflow":"w","verify":{"scheme":"hmac-sha256","header":"X-Sign","prefix":"v1=",' +
        '"encoding":"base64","timestampHeader":"X-Time","toleranceSeconds":90,"idempotencyHeader":"X-Id",' +
        '"secret":" a secret "}}',
      run: { stdin: " a secret \n" },
    },
    {
      args: ["triggers", "edit", id, "--verify", "stripe", "--tolerance", "60s"],
      call: `PATCH /triggers/${id}`,
      body: '{"verify":{"scheme":"stripe","toleranceSeconds":60}}',
    },
    {
      args: ["triggers", "rotate", id, "--secret-file", "-"],
      call: `POST /triggers/${id}/rotate`,
      body: '{"secret":"a secret"}',
      run: { stdin: "a secret\r\n" },
    },
    { args: ["triggers", "revoke-secret", id, "s-1"], call: `DELETE /triggers/${id}/secrets/s-1` },
  ] as const;
}
