#!/usr/bin/env bash
# A call of a tool that the program aborts, by its AbortSignal, is a timeout to the TypeScript client of MCP: the code of
# its error is REQUEST_TIMEOUT, as for a server that is too slow. If the client is closed next, as in a program that
# ends, the server is never told that the call is cancelled. The guess was an error that says cancelled, and that the
# server is told.
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
  else if (method === "tools/call") setTimeout(() => reply({ content: [{ type: "text", text: "done" }] }), 2000);
  else res.writeHead(202).end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const connect = async () => {
  const client = new Client({ name: "client", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/`)));
  return client;
};
for (const closesAtOnce of [false, true]) {
  heard.length = 0;
  const client = await connect();
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 300);
  const error = await client.callTool({ name: "slow", arguments: {} }, { signal: stop.signal }).catch((e) => e);
  if (closesAtOnce) await client.close();
  await new Promise((later) => setTimeout(later, 1000));
  console.log(`closed at once: ${closesAtOnce}, code ${error.code}, the server is told: ${heard.includes("notifications/cancelled")}`);
  await client.close();
}
server.closeAllConnections();
server.close();
JS
want=$(
	cat <<'END'
closed at once: false, code REQUEST_TIMEOUT, the server is told: true
closed at once: true, code REQUEST_TIMEOUT, the server is told: false
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
