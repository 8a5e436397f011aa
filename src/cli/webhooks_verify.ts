import { duration } from "../settings/parsers.ts";
import { verify } from "../webhooks/receiver.ts";
import { timeText } from "../base/rfc3339.ts";
import {
  type CommandFlag,
  type CommandOptions,
  type GivenCommand,
  type GivenFlags,
  readBytes,
  readLines,
  type RunnableCommand,
} from "./command.ts";
import { FlagError, headerOf } from "./flags.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { plainText } from "./plain_text.ts";

/** The flags of the secrets and the tolerance. */
export const SECRET_FLAGS: Readonly<Record<string, CommandFlag>> = {
  secret: { value: "SECRET", doc: "signing secret of the endpoint", repeated: true },
  "secret-file": { value: "FILE", doc: "file with signing secrets, one per line", repeated: true },
  tolerance: {
    value: "DURATION",
    doc: "maximum difference between the timestamp and the clock (default 5m)",
  },
};

/** `weir webhooks verify`. */
export const VERIFY_COMMAND: RunnableCommand = {
  command: {
    words: "webhooks verify",
    args: [],
    doc: "verify the signature and timestamp of a delivery; read its body from standard input",
    flags: {
      ...SECRET_FLAGS,
      header: { value: "'NAME: VALUE'", doc: "header of the delivery", repeated: true },
      timestamp: { value: "SECONDS", doc: "the same as --header 'X-Svc-Timestamp: SECONDS'" },
      signature: { value: "SIGNATURE", doc: "the same as --header 'X-Svc-Signature: SIGNATURE'" },
      ...OUTPUT_FLAGS,
    },
    exitCodes: { 0: "verified", 1: "not verified" },
  },
  run: verifyInput,
};

const STANDARD_INPUT = "-";

/** The secrets and the tolerance that verify deliveries. */
export interface Checking {
  readonly secrets: readonly string[];
  readonly toleranceSeconds: number | undefined;
}

/** Runs `weir webhooks verify`: 0 for a valid delivery, 1 for any other. */
async function verifyInput({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const printer = printerOf(flags, options.output);
  const headers = headersOf(flags);
  const checking = await checkingOf(flags, options);
  if (checking.secrets.length === 0) {
    throw new FlagError('Cannot run "webhooks verify": --secret or --secret-file is missing');
  }
  const body = await readBytes(STANDARD_INPUT, options);
  const result = await verify({ body, headers, now: options.clock.now(), ...checking });
  if (printer !== undefined) {
    const { ok: verified, ...rest } = result;
    const sentAt = "timestamp" in rest ? timeText(rest.timestamp * 1_000) : undefined;
    printer.print({ verified, sentAt, ...rest, timestamp: undefined });
    return verified ? 0 : 1;
  }
  if (!result.ok) {
    options.output.stderr(`not verified: ${plainText(result.message)}`);
    return 1;
  }
  const facts = [
    `sent at ${timeText(result.timestamp * 1_000)}`,
    ...(result.event === undefined ? [] : [`event ${result.event}`]),
    ...(result.delivery === undefined ? [] : [`delivery ${result.delivery}`]),
  ];
  options.output.stdout(`verified: ${plainText(facts.join(", "))}`);
  return 0;
}

/** Reads the secrets and the tolerance of the flags. */
export async function checkingOf(flags: GivenFlags, options: CommandOptions): Promise<Checking> {
  const secrets = flags.texts("secret").filter((secret) => secret !== "");
  for (const path of flags.texts("secret-file")) {
    if (path === STANDARD_INPUT) {
      throw new FlagError("Invalid --secret-file: expected a file, not standard input");
    }
    secrets.push(...await readLines(path, options));
  }
  const toleranceMs = flags.value("tolerance", duration());
  return { secrets, toleranceSeconds: toleranceMs === undefined ? undefined : toleranceMs / 1_000 };
}

function headersOf(flags: GivenFlags): (readonly [string, string])[] {
  const named = flags.texts("header").map((text) => {
    const header = headerOf(text);
    if (header !== undefined) return header;
    throw new FlagError('Invalid --header: expected "Name: value"');
  });
  const timestamp = flags.text("timestamp");
  const signature = flags.text("signature");
  return [
    ...named,
    ...(timestamp === undefined ? [] : [["X-Svc-Timestamp", timestamp] as const]),
    ...(signature === undefined ? [] : [["X-Svc-Signature", signature] as const]),
  ];
}
