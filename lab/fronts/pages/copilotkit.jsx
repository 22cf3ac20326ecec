// A page as docs/agui.md says.
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useAgent, useCopilotKit, useDefaultRenderTool, useFrontendTool, useInterrupt } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { z } from "zod";
import { Desk, thread } from "./desk.js";

const desk = new Desk({ url: "/agent", threadId: thread });
window.desk = desk;

function Chat() {
  const { agent } = useAgent({ agentId: "desk" });
  const { copilotkit } = useCopilotKit();
  const state = agent.state ?? {};
  useFrontendTool({
    name: "color",
    description: "Asks the person for a color.",
    parameters: z.object({ text: z.string() }),
    handler: async ({ text }) => text + " is green",
  });
  useDefaultRenderTool({
    render: ({ name, parameters, status, result }) => (
      <pre className="call">
        {name} {JSON.stringify(parameters)} {status} {result}
      </pre>
    ),
  });
  const decide = (interruptId, payload) =>
    copilotkit.runAgent({ agent, resume: [{ interruptId, status: "resolved", payload }] });
  useInterrupt({
    agentId: "desk",
    render: ({ interrupts }) => (
      <>
        {interrupts.map(({ id, message }) => (
          <p key={id} className="waits">
            {message}
            <button id="yes" onClick={() => decide(id, { approved: true, editedArgs: { text: "less" } })}>
              Yes
            </button>
            <button id="no" onClick={() => decide(id, { approved: false })}>
              No
            </button>
          </p>
        ))}
      </>
    ),
  });
  const begin = (messages) => {
    agent.setMessages(messages);
    copilotkit.runAgent({ agent });
  };
  const place = (message) => agent.messages.findIndex((m) => m.id === message.id);
  const onEditMessage = ({ message }) => {
    const content = window.prompt("Instead:");
    begin([...agent.messages.slice(0, place(message)), { ...message, content }]);
  };
  const onRegenerate = (message) => {
    const before = agent.messages.slice(0, place(message));
    begin(before.slice(0, before.findLastIndex((m) => m.role === "user") + 1));
  };
  return (
    <div>
      <small id="status">{agent.isRunning ? "running" : "ready"}</small>
      <button id="stop" onClick={() => agent.abortRun()}>Stop</button>
      <input id="title" value={state.title ?? ""} onChange={(e) => agent.setState({ ...state, title: e.target.value })} />
      {!agent.isRunning && agent.messages.at(-1)?.role === "user" && (
        <button id="retry" onClick={() => copilotkit.runAgent({ agent, forwardedProps: { retry: true } })}>Try again</button>
      )}
      <div style={{ height: 600 }}>
        <CopilotChat
          agentId="desk"
          threadId={thread}
          attachments={{ enabled: true }}
          messageView={{ userMessage: { onEditMessage }, assistantMessage: { onRegenerate } }}
        />
      </div>
    </div>
  );
}

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider agents__unsafe_dev_only={{ desk }}>
    <Chat />
  </CopilotKitProvider>,
);
