import { settingsHelp } from "../settings/docs.ts";
import { client } from "./client.ts";
import { groupLines, isCommandGroup, usageFor } from "./commands.ts";
import type { Output } from "./output.ts";

const SERVE_USAGE = `usage: weir serve

Serves gRPC, HTTP and the debug port until it is told to stop. It takes no arguments: every setting is an
environment variable, and "weir help" lists them.`;

const HELP_FLAGS = ["-h", "--h", "-help", "--help"];

/** The commands, as shown after one that is unknown. */
export function commandsText(version: string): string {
  return `weir ${version}: a rate limit decision service

  weir serve      serve gRPC, HTTP and the debug port (the default)
  weir client     ask a service for one decision
  weir check DIR  check the rule files of a folder
  weir explain    tell which rule decides a request, and why
  weir simulate   decide requests of a file by other rules, and tell what changes
  weir health     ask a service whether it is healthy
  weir help       this text, and every setting
  weir version    the version

Of the webhook service, over its administration at WEIR_URL with ADMIN_TOKEN (the last two without):

${groupLines().join("\n")}

Every command has a -help of its own; "weir help" with the words of a command shows the same.`;
}

/** The command `weir help`: the usage of the command it names, or all commands and every setting. */
export async function help(
  args: readonly string[],
  options: { readonly version: string; readonly output: Output },
): Promise<number> {
  const { version, output } = options;
  switch (args[0]) {
    case "client":
      return await client(["-help"], output);
    case "serve":
      output.stdout(SERVE_USAGE);
      return 0;
    default:
      if (isCommandGroup(args[0] ?? "")) {
        output.stdout(usageFor(args));
        return 0;
      }
      output.stdout(`${commandsText(version)}\n\nSettings are environment variables:\n\n${settingsHelp()}`);
      return 0;
  }
}

/**
 * Answers what stands behind `weir serve` on the command line with its usage; the exit code, or nothing
 * when nothing stands there and the service may start.
 */
export function serveUsage(args: readonly string[], output: Output): number | undefined {
  if (args.length === 0) return undefined;
  if (args.some((arg) => HELP_FLAGS.includes(arg))) {
    output.stdout(SERVE_USAGE);
    return 0;
  }
  output.stderr(`Cannot serve with "${args.join(" ")}": no arguments would be right\n\n${SERVE_USAGE}`);
  return 2;
}
