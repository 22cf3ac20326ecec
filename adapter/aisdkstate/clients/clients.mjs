// Runs clients of the AI SDK for the tests. It reads commands as JSON, one a line, and
// answers each with what the client shows.
import { createInterface } from "node:readline";
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

// Shown is the state of a chat, as the hook of a framework keeps it.
class Shown {
  status = "ready";
  error = undefined;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (m) => (this.messages = [...this.messages, m]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => (this.messages = this.messages.map((old, n) => (n === i ? m : old)));
  snapshot = (v) => structuredClone(v);
}

class Chat extends AbstractChat {}

const chats = new Map();

async function open({ name, url, id }) {
  const loaded = await (await fetch(`${url}/${id}`)).json();
  const shown = new Shown(loaded.messages);
  const page = { shown, fields: loaded.state, url, id };
  page.chat = new Chat({
    id, state: shown, transport: new DefaultChatTransport({ api: url + "/" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: (d) => d.type === "data-state" && (page.fields = d.data),
  });
  chats.set(name, page);
  return page;
}

// settled waits until a chat does nothing any more.
async function settled(page) {
  for (let quiet = 0; quiet < 3; ) {
    await new Promise((done) => setTimeout(done, 20));
    quiet = page.shown.status === "ready" || page.shown.status === "error" ? quiet + 1 : 0;
  }
}

// says waits until there are n messages, and the last one says something.
async function says({ shown }, n, text) {
  while (shown.messages.length < n || !JSON.stringify(shown.messages.at(-1)).includes(text)) await new Promise((done) => setTimeout(done, 10));
}

const verbs = {
  open: async (c) => void (await open(c)),
  send: (c, { chat }) => chat.sendMessage({ text: c.text, messageId: c.edit }),
  begin: async (c, page) => {
    const n = page.shown.messages.length + 2;
    void page.chat.sendMessage({ text: c.text });
    await says(page, n, c.until);
  },
  resume: async (c, page) => {
    const n = page.shown.messages.length + 1;
    void page.chat.resumeStream();
    await says(page, n, c.until);
  },
  decide: async (c, page) => {
    for (const m of page.shown.messages)
      for (const p of m.parts) if (p.state === "approval-requested") await page.chat.addToolApprovalResponse({ id: p.approval.id, approved: c.approved });
    await settled(page);
  },
  regenerate: (c, { chat }) => chat.regenerate(),
  stop: async (c, page) => {
    await fetch(`${page.url}/${page.id}/stop`, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    await settled(page);
  },
  settle: (c, page) => settled(page),
};

for await (const line of createInterface({ input: process.stdin })) {
  const c = JSON.parse(line);
  let failed;
  try {
    await verbs[c.verb](c, chats.get(c.name));
  } catch (e) {
    failed = String(e?.stack ?? e);
  }
  const { shown, fields } = chats.get(c.name);
  console.log(JSON.stringify({ messages: shown.messages, status: shown.status, error: shown.error?.message, fields, failed }));
}
