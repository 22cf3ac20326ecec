// Clients of AG-UI, which a test leads: a line of its input is a command, and a line of its output is the answer.
import readline from "node:readline";

const libraries = { 0: await import("client-0"), 1: await import("client-1") };
const agents = {};
let warnings = [];
process.on("unhandledRejection", () => {}); // the client does not catch all of a connection that breaks off
process.on("uncaughtException", () => {});
console.warn = console.error = console.log = (...args) => warnings.push(args.map(String).join(" "));

// cutAfter returns a fetch whose answers break off after so many bytes.
const cutAfter = (limit) => async (url, init) => {
  const abort = new AbortController();
  const response = await fetch(url, { ...init, signal: AbortSignal.any([init.signal, abort.signal]) });
  const reader = response.body.getReader();
  let left = limit;
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = left > 0 ? await reader.read() : { done: true };
      if (done) {
        controller.close();
        abort.abort();
        return;
      }
      controller.enqueue(value.slice(0, left));
      left -= value.length;
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
};

const show = (agent, log, error) => ({
  messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts, pending: agent.pendingCalls,
  events: log, error: error && String(error), running: agent.isRunning,
});

const commands = {
  open({ id, version, url, thread, messages, state, headers }) {
    const agent = new libraries[version].HttpAgent({ url, threadId: thread, initialMessages: messages, initialState: state, headers });
    agent.pendingCalls = [];
    agent.plainFetch = agent.fetch;
    agents[id] = agent;
    return show(agent, []);
  },
  move({ id, url }) {
    agents[id].url = url;
    return show(agents[id], []);
  },
  // say adds messages, and sets members of the state.
  say({ id, messages, keep, state }) {
    const agent = agents[id];
    if (keep !== undefined) agent.messages = agent.messages.slice(0, keep);
    for (const m of messages ?? []) agent.messages.push(m);
    if (state) agent.state = { ...agent.state, ...state };
    return show(agent, []);
  },
  show: ({ id }) => show(agents[id], agents[id].log ?? []),
  // run sends what the agent has. With until, it is given up at so many events of that type.
  async run({ id, resume, tools, props, cut, until, count = 1, runId, timeout = 20000 }) {
    const agent = agents[id];
    const log = [];
    agent.fetch = cut === undefined ? agent.plainFetch : cutAfter(cut);
    const timer = setTimeout(() => { log.push({ type: "TIMEOUT" }); agent.abortRun(); }, timeout);
    let error, abort;
    try {
      await agent.runAgent({ resume, tools, runId, forwardedProps: props }, {
        onEvent({ event }) {
          log.push(event);
          if (event.type === until && --count === 0) abort = setTimeout(() => agent.abortRun(), 1); // when it is applied
        },
        onRunFinishedEvent(e) { agent.pendingCalls = e.pendingToolCallIds ?? []; },
      });
    } catch (e) {
      error = e;
    }
    clearTimeout(timer);
    clearTimeout(abort);
    return show(agent, log, error);
  },
  // follow is run without an end: it answers at once, and wait tells what has come.
  follow({ id }) {
    const agent = agents[id];
    agent.fetch = agent.plainFetch;
    agent.log = [];
    agent.failure = undefined;
    agent.following = agent.runAgent({ forwardedProps: { follow: true } }, { onEvent({ event }) { agent.log.push(event); } }).catch((e) => { agent.failure = e; });
    return show(agent, []);
  },
  // wait waits until a follower has a version of the state, and no run is open.
  async wait({ id, version, timeout = 20000 }) {
    const agent = agents[id];
    const end = Date.now() + timeout;
    const done = () => agent.state?.$version?.startsWith(version + "-") && agent.log.at(-1)?.type === "RUN_FINISHED";
    while (!done() && Date.now() < end && !agent.failure) await new Promise((r) => setTimeout(r, 5));
    return show(agent, agent.log, agent.failure ?? (done() ? undefined : "timeout"));
  },
  async stop({ id }) {
    const agent = agents[id];
    agent.abortRun();
    await agent.following;
    return show(agent, agent.log ?? [], agent.failure);
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  warnings = [];
  const answer = await commands[command.op](command);
  process.stdout.write(JSON.stringify({ ...answer, warnings }) + "\n");
}
