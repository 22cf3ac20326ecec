// node clients.mjs URL KIND: what a client of MCP gets of a server, as JSON. KIND is "sdk" for @modelcontextprotocol/sdk,
// or the mode of version negotiation of @modelcontextprotocol/client.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, kind] = process.argv.slice(2);
const info = { name: "test", version: "1" };
const isOld = kind === "sdk";
const client = isOld ? new OldClient(info) : new Client(info, { versionNegotiation: { mode: kind } });
const transport = new (isOld ? OldTransport : StreamableHTTPClientTransport)(new URL(url), {
  requestInit: { headers: { "X-User": "ann", "X-Agent": "guest" } },
});
await client.connect(transport);
const call = async (name, args, meta) =>
  (await client.callTool({ name, arguments: args, _meta: meta })).content.map((c) => c.text).join();
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const failure = (e) => e.code;

const got = {
  tools: (await client.listTools()).tools.map((t) => t.name),
  called: await call("note", { text: "a" }, { "agentstate.dev/idempotency-key": "k1" }),
  read: await read("state://ann/notes"),
  hidden: await read("state://ann/card").catch(failure),
  resources: (await client.listResources()).resources.map((r) => r.uri),
};
await call("note", { text: "b" });
got.again = await read("state://ann/notes");
got.version = transport.protocolVersion ?? client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify(got));
