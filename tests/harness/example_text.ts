/** Reads the commands of examples, and compares their output with the page. */
import { requireTool } from "./tools.ts";

/** A command ends with its line, unless a quote is still open there. */
export function commandsOf(text: string): string[] {
  const commands: string[] = [];
  let open: string | undefined;
  for (const line of text.split("\n")) {
    if (open === undefined && !line.startsWith("$ ")) continue;
    const command: string = open === undefined ? line.slice(2) : `${open}\n${line}`;
    open = command.split("'").length % 2 === 0 ? command : undefined;
    if (open === undefined) commands.push(command);
  }
  return commands;
}

/** The output of curl, with plain line breaks. */
export async function curl(args: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command(requireTool("curl"), { args: ["--noproxy", "*", ...args] })
    .output();
  return new TextDecoder().decode(stdout).replaceAll("\r\n", "\n");
}

/** The words of a command, some of them in quotes. */
export function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
    .map(([, single, double, plain]) => single ?? double ?? plain ?? "");
}

/** As `steady`, without identifiers. */
export function comparable(text: string): string {
  return steady(text).replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID");
}

/** Without what differs from run to run: dates, lengths, seconds; headers sorted, their names in lower case. */
export function steady(text: string): string {
  return text.trimEnd()
    .replace(/^date: .*$/gim, "date: DATE")
    .replace(/^content-length: \d+$/gim, "content-length: LENGTH")
    .replace(/("durationUntilReset": ?)"\d+s"/g, '$1"SECONDS"')
    .replace(/(RateLimit-Reset(?:: |","value":"))\d+/g, "$1SECONDS")
    .replace(/reset in \d+ s/g, "reset in SECONDS")
    .replace(/^(HTTP\/1\.1 .*\n)((?:[\w-]+: .*\n)+)/gm, (_, status: string, headers: string) => {
      const lines = headers.trimEnd().split("\n");
      return `${status}${
        lines.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase())).sort().join("\n")
      }\n`;
    });
}
