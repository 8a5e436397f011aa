import { parseDuration } from "../base/duration.ts";
import { verify } from "../webhooks/receiver.ts";
import { timeText } from "../base/rfc3339.ts";
import { type CommandOptions, type GivenCommand, type GivenFlags, readBytes, readLines } from "./command.ts";
import { FlagError, headerOf } from "./flags.ts";
import { plainText } from "./plain_text.ts";

const STANDARD_INPUT = "-";

/** The secrets and the tolerance that verify deliveries. */
export interface Checking {
  readonly secrets: readonly string[];
  readonly toleranceSeconds: number | undefined;
}

/** Runs `weir webhooks verify`: 0 for a valid delivery, 1 for any other. */
export async function verifyInput({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const headers = headersOf(flags);
  const checking = await checkingOf(flags, options);
  if (checking.secrets.length === 0) {
    throw new FlagError('Cannot run "webhooks verify": --secret or --secret-file is missing');
  }
  const body = await readBytes(STANDARD_INPUT, options);
  const result = await verify({ body, headers, now: options.clock.now(), ...checking });
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
  const files = await Promise.all(
    flags.texts("secret-file").map((path) => {
      if (path !== STANDARD_INPUT) return readLines(path, options);
      throw new FlagError("Invalid --secret-file: expected a file, not standard input");
    }),
  );
  const secrets = [...flags.texts("secret"), ...files.flat()].filter((secret) => secret !== "");
  const text = flags.text("tolerance");
  const toleranceMs = text === undefined ? undefined : parseDuration(text);
  if (text !== undefined && toleranceMs === undefined) {
    throw new FlagError(`Invalid --tolerance "${text}": expected a duration such as 5m`);
  }
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
