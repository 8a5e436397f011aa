/** How the commands of an example are read, and how what they print is compared with the page. */

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

/** What a curl command line asks for. */
export interface CurlFlags {
  url: string;
  method: string | undefined;
  body: string | undefined;
  withHeaders: boolean;
  onlyStatus: boolean;
  headers: Record<string, string>;
}

/** The few flags of curl that examples use; short ones may be joined, as in `-sS`. */
export function curlFlags(args: readonly string[]): CurlFlags {
  const flags: CurlFlags = {
    ...{ url: "", method: undefined, body: undefined },
    ...{ withHeaders: false, onlyStatus: false, headers: {} },
  };
  const rest = args.flatMap((arg) =>
    /^-\w{2,}$/.test(arg) ? [...arg.slice(1)].map((flag) => `-${flag}`) : arg
  );
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "-i") flags.withHeaders = true;
    else if (arg === "-d") flags.body = rest.shift();
    else if (arg === "-X") flags.method = rest.shift();
    else if (arg === "-w") flags.onlyStatus = rest.shift() === "%{http_code}\\n";
    else if (arg === "-H") {
      const [name = "", value = ""] = (rest.shift() ?? "").split(": ");
      flags.headers[name] = value;
    } else if (arg === "-o") rest.shift();
    else if (/^(?:http:\/\/|localhost:)/.test(arg)) flags.url = arg.replace(/^localhost/, "http://localhost");
    else if (!["-s", "-S"].includes(arg)) {
      throw new Error(`Cannot run curl with "${arg}": the flag is unknown here`);
    }
  }
  return flags;
}

/** Does what curl does; answers what it prints. */
export async function curl(flags: CurlFlags): Promise<string> {
  const { url, body, headers, withHeaders, onlyStatus } = flags;
  const method = flags.method ?? (body === undefined ? "GET" : "POST");
  const response = await fetch(url, { ...(body === undefined ? {} : { body }), method, headers });
  const text = await response.text();
  if (onlyStatus) return `${response.status}\n`;
  if (!withHeaders) return text;
  const lines = [...response.headers].map(([name, value]) => `${name}: ${value}\n`).join("");
  return `HTTP/1.1 ${response.status} ${response.statusText}\n${lines}\n${text}`;
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
