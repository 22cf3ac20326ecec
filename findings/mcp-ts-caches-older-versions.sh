#!/usr/bin/env bash
# The TypeScript client of MCP caches what it reads from a server of 2025-11-25 if the result has ttlMs, a member that
# came with 2026-07-28: the second read does not reach the server. The Go SDK v1.8.0 has no cache at that version. The
# guess was that the member is nothing to the client at a version without it.
#
# Seen on 2026-11-28, with Node 20 and @modelcontextprotocol/client 2.4.0.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --no-audit --no-fund --ignore-scripts @modelcontextprotocol/client@2.4.0 >install.log 2>&1 || {
	cat install.log >&2
	exit 1
}
cat >main.js <<'JS'
import { createServer } from "node:http";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

// A server of 2025-11-25.
const heard = [];
const server = createServer(async (req, res) => {
  let body = "";
  for await (const chunk of req) body += chunk;
  if (req.method !== "POST") return void res.writeHead(405).end();
  const { id, method, params } = JSON.parse(body);
  heard.push(method);
  const reply = (result) => res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  const serverInfo = { name: "server", version: "1" };
  if (method === "initialize") reply({ protocolVersion: "2025-11-25", capabilities: { tools: {}, resources: {} }, serverInfo });
  else if (method === "resources/read") {
    const reads = heard.filter((h) => h === method).length;
    reply({ contents: [{ uri: params.uri, text: `read ${reads}` }], ttlMs: 60000, cacheScope: "private" });
  }
  else res.writeHead(202).end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const connect = async () => {
  const client = new Client({ name: "client", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/`)));
  return client;
};
const client = await connect();
console.log("version", client.getNegotiatedProtocolVersion());
for (const cacheMode of ["use", "use", "refresh"]) {
  console.log(cacheMode, (await client.readResource({ uri: "x://1" }, { cacheMode })).contents[0].text);
}
await client.close();
server.closeAllConnections();
server.close();
JS
want=$(
	cat <<'END'
version 2025-11-25
use read 1
use read 1
refresh read 2
END
)
got=$(node main.js 2>run.log) || {
	cat run.log >&2
	exit 1
}
echo "$got"
[ "$got" = "$want" ] || {
	printf 'it has changed: it was\n%s\n' "$want" >&2
	exit 1
}
