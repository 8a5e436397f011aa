import { assert, assertEquals } from "#assert";
import { ran, words } from "../../harness/administration_fixture.ts";

const ID = "3b241101-e2bb-4255-8caf-4136c566a962";
const TIMEOUT = "expected a duration from 1ms to 24h, such as 10s, 150us or 1m30s";
const BENCH = "bench --addr 127.0.0.1:1";
const CLIENT = "client -domain d -descriptors a=b";
const SIMULATE = "simulate --config /x --requests -";

/** Command lines, after variables of their environment, and the first line of what each prints. */
const WRONG: Readonly<Record<string, string>> = {
  "endpoints add": 'Cannot run "endpoints add": URL is missing',
  "endpoints add ''": 'Cannot run "endpoints add": URL is missing',
  "endpoints list x": 'Cannot run "endpoints list": expected "weir endpoints list [flags]"',
  [`endpoints edit ${ID}`]: 'Cannot run "endpoints edit": nothing to change',
  "endpoints show ..": 'Invalid ID "..": expected an identifier',
  [`endpoints recover ${ID}`]: 'Cannot run "endpoints recover": --since is missing',
  [`endpoints recover ${ID} --since yesterday`]:
    'Invalid --since "yesterday": expected a time such as 2026-01-31T12:00:00Z, or how long ago it was, such as 24h',
  "endpoints add u --concurrency -1": 'Invalid --concurrency "-1": expected an integer',
  "endpoints add u --attempt-timeout 5":
    'Invalid --attempt-timeout "5": expected a duration such as 500ms or 10s',
  "endpoints add u --header secret": 'Invalid --header: expected "Name: value"',
  "endpoints add u --header 'a: secret' --header 'A: b'": "Invalid --header: expected each header once",
  [`endpoints edit ${ID} --header 'a: secret' --no-headers`]: "Cannot use --no-headers with --header",
  [`endpoints edit ${ID} --enable --disable`]: "Cannot use --disable with --enable",
  ...Object.fromEntries(
    ["plan", "=pro", "plan=", "plan={x", "plan=pro,", 'plan="pro', 'plan="a"b', 'plan=a"b'].map((text) => [
      `endpoints add u --filter ${text}`,
      `Invalid --filter "${text}": expected path=value[,value...] or path=JSON`,
    ]),
  ),
  "endpoints add u --filter a=1 --filter a=2": 'Invalid --filter "a=1 a=2": expected each path once',
  [`endpoints edit ${ID} --filter a=1 --no-filter`]: "Cannot use --no-filter with --filter",
  "triggers create t": 'Cannot run "triggers create": --workflow is missing',
  [`triggers edit ${ID} --no-limit --limit-domain edge`]: "Cannot use --no-limit with --limit-domain",
  [`triggers edit ${ID} --limit-descriptor customer`]:
    'Invalid --limit-descriptor "customer": expected key=value[,key=value...]',
  [`triggers edit ${ID} --tolerance 1500ms`]:
    'Invalid --tolerance "1500ms": expected a duration in whole seconds such as 90s or 5m',
  "event-keys create agents": 'Cannot run "event-keys create": --kind is missing',
  "events post": 'Cannot run "events post": KIND is missing',
  "events post a.b --data '{\"secret'": "Invalid --data: expected JSON",
  "events post a.b --data {} --data-file -": "Cannot use --data-file with --data",
  "counters peek --domain shop": 'Cannot run "counters peek": --descriptors or --bucket is missing',
  "counters peek --domain shop --bucket account":
    'Invalid --bucket "account": "account" has no equals sign: expected key=value',
  "counters reset --descriptors a=b": 'Cannot run "counters reset": --domain is missing',
  "counters reset --domain shop --descriptors account":
    'Invalid --descriptors "account": "account" has no equals sign: expected key=value',
  "triggers call": 'Cannot run "triggers call": NAME is missing',
  "triggers call a --data '{\"secret'": "Invalid --data: expected JSON",
  "workflows show ..": 'Invalid NAME "..": expected an identifier',
  "workflows list --since 1h": "Unknown flag --since",
  "audit --acton x": "Unknown flag --acton; did you mean --action?",

  "client -descriptors a=b": 'Cannot run "client": --domain is missing',
  "client -domain d": 'Cannot run "client": --descriptors is missing',
  "client -domain d -descriptors a=b,c":
    'Invalid --descriptors "a=b,c": "c" has no equals sign: expected key=value',
  [`${CLIENT} -dial_string localhost`]: 'Invalid --addr "localhost": expected host:port or unix:/path',
  [`${CLIENT} -hits_addend -1`]: 'Invalid --hits-addend "-1": expected an integer from 0 to 4294967295',
  [`${CLIENT} -hits_addend=4294967296`]:
    'Invalid --hits-addend "4294967296": expected an integer from 0 to 4294967295',
  [`${CLIENT} -timeout=10`]: `Invalid --timeout "10": ${TIMEOUT}`,
  [`${CLIENT} -timeout=0s`]: `Invalid --timeout "0s": ${TIMEOUT}`,
  [`${CLIENT} -timeout=25h`]: `Invalid --timeout "25h": ${TIMEOUT}`,
  [`${CLIENT} -ca ca.pem`]: "Cannot use --ca: it requires --tls",
  [`${CLIENT} -tls -cert c.pem`]: "Cannot use a client certificate: --cert and --key belong together",
  [`${CLIENT} x`]: 'Cannot run "client": expected "weir client [flags]"',
  [`${CLIENT} -descriptor a=b`]: "Unknown flag --descriptor; did you mean --descriptors?",

  "health now": 'Cannot run "health": expected "weir health [flags]"',
  "health --uri x": "Unknown flag --uri; did you mean --url?",
  ...Object.fromEntries(
    ["5", "0s", "900us", "24h1ms"].map((text) => [
      `health --timeout ${text}`,
      `Invalid --timeout "${text}": ${TIMEOUT}`,
    ]),
  ),
  "health --grpc localhost": 'Invalid --addr "localhost": expected host:port or unix:/path',
  "health --addr a:1 --url http://a": "Cannot use --url with --addr",
  "health --addr a:1 --ca ca.pem": "Cannot use --ca with --addr",
  "health --grpc a:1 --strict": "Cannot use --strict with --addr",
  "health --ca ca.pem": "Cannot use --ca: it requires an https --url",
  "health --url http://a --ca ca.pem": "Cannot use --ca: it requires an https --url",
  "health --url http://bob:word@a": "Invalid --url: expected no user name and password",
  "PORT=0 health": 'Invalid PORT "0": the service takes a free port; set --url',

  bench: 'Cannot run "bench": --addr is missing',
  "bench --addr ''": 'Cannot run "bench": --addr is missing',
  "bench --addr host": 'Invalid --addr "host": expected host:port or unix:/path',
  [`${BENCH} --seconds 601`]: 'Invalid --seconds "601": expected a number from 0.1 to 600',
  [`${BENCH} --seconds 0`]: 'Invalid --seconds "0": expected a number from 0.1 to 600',
  [`${BENCH} --warm-up 61`]: 'Invalid --warm-up "61": expected a number from 0 to 60',
  [`${BENCH} --connections 1001`]: 'Invalid --connections "1001": expected an integer from 1 to 1000',
  [`${BENCH} --connections 1000`]:
    "Cannot use 1000 connections with 32 calls in flight each: expected at most 16384 calls in total; set --in-flight",
  [`${BENCH} --rate 1e9`]: 'Invalid --rate "1e9": expected a number from 1 to 1000000',
  [`${BENCH} --keys 0`]: 'Invalid --keys "0": expected an integer from 1 to 10000000',
  [`${BENCH} --seed x`]: 'Invalid --seed "x": expected an integer from 0 to 4294967295',
  [`${BENCH} --keys 5 --descriptors a=b`]: "Cannot use --keys: no descriptor contains {key}",
  [`${BENCH} --descriptors a`]: 'Invalid --descriptors "a": "a" has no equals sign: expected key=value',
  [`${BENCH} --descriptors a=${"b".repeat(1_100)}`]:
    'Invalid --descriptors: Cannot send body of "1124" bytes: at most 1024',
  [`${BENCH} --output xml`]: 'Invalid --output "xml": expected table, json, yaml',
  [`${BENCH} --ca x`]: "Cannot use --ca: it requires --tls",
  [`${BENCH} --tls --cert x`]: "Cannot use a client certificate: --cert and --key belong together",
  "bench --addr unix:/x --tls": "Cannot use --tls: a unix socket has no TLS",
  [`${BENCH} --key-count 1`]: "Unknown flag --key-count",

  simulate: 'Cannot run "simulate": --config is missing',
  "simulate --config /x": 'Cannot run "simulate": --requests is missing',
  [`${SIMULATE} --max-changes all`]: 'Invalid --max-changes "all": expected an integer of 0 or more',
  [`${SIMULATE} --max-wrong -1`]: 'Invalid --max-wrong "-1": expected an integer of 0 or more',

  "webhooks listen --port 65536": 'Invalid --port "65536": expected an integer from 0 to 65535',
  "webhooks listen --port -1": 'Invalid --port "-1": expected an integer from 0 to 65535',
  "webhooks listen --fail 200": 'Invalid --fail "200": expected timeout, reset or a status from 300 to 599',
  "webhooks listen --fail 503:0":
    'Invalid --fail "503:0": expected timeout, reset or a status from 300 to 599',
  "webhooks verify": 'Cannot run "webhooks verify": --secret or --secret-file is missing',
  "webhooks verify --secret ''": 'Cannot run "webhooks verify": --secret or --secret-file is missing',
  "webhooks verify --secret-file -": "Invalid --secret-file: expected a file, not standard input",
  "webhooks verify --header whsec_secret": 'Invalid --header: expected "Name: value"',
  "webhooks verify --tolerance 300":
    'Invalid --tolerance "300": expected a duration, such as 10s, 150us or 1m30s',
  "webhooks verify whsec_secret": 'Cannot run "webhooks verify": expected "weir webhooks verify [flags]"',

  "store check": "Cannot find the store: set WEBHOOK_STORE or --store",
  "store move": 'Cannot run "store move": --from or --to is missing',
  "store move --from a.db": "Cannot find the store: set WEBHOOK_STORE or --to",
  "store backup": 'Cannot run "store backup": FILE is missing',
  check: 'Cannot run "check": DIR is missing',
  "check a b": 'Cannot run "check": expected "weir check DIR [flags]"',
  "check a --strickt": "Unknown flag --strickt; did you mean --strict?",
  "workflows check": 'Cannot run "workflows check": DIR is missing',
  "workflows check a b": 'Cannot run "workflows check": expected "weir workflows check DIR [flags]"',
  "workflows check --jsn a": "Unknown flag --jsn; did you mean --json?",
  "explain --domain d --descriptors k=v": 'Cannot run "explain": --config is missing',
  "explain --config /x --descriptors k=v": 'Cannot run "explain": --domain is missing',
  "explain --config /x --domain ''": 'Cannot run "explain": --domain is missing',
  "explain --config /x --domain d": 'Cannot run "explain": --descriptors or --bucket is missing',
  "explain --config /x --domain d --descriptors k=v --bucket k=v": "Cannot use --bucket with --descriptors",
  "explain --config /x --bucket k=v": 'Cannot run "explain": --domain is missing',
  "explain --config /x --domain d --bucket k":
    'Invalid --bucket "k": "k" has no equals sign: expected key=value',
  "explain --config /x --domain d --bucket =v": 'Invalid --bucket "=v": expected pairs with keys',
  "explain --config /x --domain d --bucket a=,b=,c=,d=,e=,f=,g=,h=,i=":
    'Invalid --bucket "a=,b=,c=,d=,e=,f=,g=,h=,i=": expected at most 8 pairs',
  "explain --config /x --domain d --descriptors k":
    'Invalid --descriptors "k": "k" has no equals sign: expected key=value',
  "counters peek --domain d --descriptors a=b -o id":
    'Cannot use --output id with "counters peek": its answer has no identifier',
  "check a --output id": 'Invalid --output "id": expected table, json, yaml',
  "completions tcsh": 'Invalid SHELL "tcsh": expected bash, zsh or fish',
};

for (const [line, first] of Object.entries(WRONG)) {
  Deno.test(`weir ${line.slice(0, 100)}: is wrong usage`, async () => {
    const { environment, args } = parts(line);
    const { code, stdout, stderr } = await ran(args, { environment, stdin: "{}" });
    const [problem, hint, ...others] = stderr.trimEnd().split("\n");
    assertEquals([code, stdout, problem, others], [2, "", first, []]);
    assert(/^Run "weir [a-z -]+ --help" for its usage$/.test(hint ?? ""), stderr);
    assert(!stderr.includes("whsec_secret"));
  });
}

/** The variables in front of a command line, and its words. */
function parts(line: string): { environment: Record<string, string>; args: readonly string[] } {
  const all = words(line);
  const start = all.findIndex((word) => !/^[A-Z]+=/.test(word));
  const environment = Object.fromEntries(all.slice(0, start).map((word) => word.split("=")));
  return { environment, args: all.slice(start) };
}
