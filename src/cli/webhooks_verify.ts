import { parseDuration } from "../base/duration.ts";
import { verify } from "../webhooks/receiver.ts";
import { timeText } from "../base/rfc3339.ts";
import type { GivenCommand, GivenFlags } from "./command.ts";
import { type CommandOptions, readBytes, readLines } from "./command_input.ts";
import { FlagError } from "./flags.ts";
import { headerOf } from "./header_text.ts";
import { plainText } from "./plain_text.ts";

const STANDARD_INPUT = "-";

/** What deliveries are checked with. */
export interface Checking {
  readonly secrets: readonly string[];
  readonly toleranceSeconds: number | undefined;
}

/** The command `weir webhooks verify`: 0 for a delivery that is right, 1 for any other. */
export async function verifyInput({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const headers = headersOf(flags);
  const checking = await checkingOf(flags, options);
  if (checking.secrets.length === 0) throw new FlagError("Cannot verify: -secret or -secret-file is missing");
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

/** Reads the flags that say what deliveries are checked with. */
export async function checkingOf(flags: GivenFlags, options: CommandOptions): Promise<Checking> {
  const files = await Promise.all(
    flags.texts("secret-file").map((path) => {
      if (path !== STANDARD_INPUT) return readLines(path, options);
      throw new FlagError(
        "Cannot use -secret-file: standard input is not for secrets, a file would be right",
      );
    }),
  );
  const secrets = [...flags.texts("secret"), ...files.flat()].filter((secret) => secret !== "");
  const text = flags.text("tolerance");
  const toleranceMs = text === undefined ? undefined : parseDuration(text);
  if (text !== undefined && toleranceMs === undefined) {
    throw new FlagError(`Cannot use -tolerance "${text}": a duration such as 5m would be right`);
  }
  return { secrets, toleranceSeconds: toleranceMs === undefined ? undefined : toleranceMs / 1_000 };
}

function headersOf(flags: GivenFlags): (readonly [string, string])[] {
  const named = flags.texts("header").map((text) => {
    const header = headerOf(text);
    if (header !== undefined) return header;
    throw new FlagError('Cannot use -header: "Name: value" would be right');
  });
  const timestamp = flags.text("timestamp");
  const signature = flags.text("signature");
  return [
    ...named,
    ...(timestamp === undefined ? [] : [["X-Svc-Timestamp", timestamp] as const]),
    ...(signature === undefined ? [] : [["X-Svc-Signature", signature] as const]),
  ];
}
