import { assertEquals } from "#assert";
import { hostPort } from "../../../src/base/host_port.ts";

Deno.test("host and port: an IPv6 address is in brackets", () => {
  const places = [{ host: "10.0.0.1", port: 7_000 }, { host: "::1", port: 1 }, {
    host: "kv-0.example",
    port: 65_535,
  }];
  assertEquals(places.map(hostPort), ["10.0.0.1:7000", "[::1]:1", "kv-0.example:65535"]);
});
