// A page as docs/agui.md says.
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useAgent, useDefaultRenderTool, useFrontendTool, useInterrupt } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { z } from "zod";
import { Desk, thread } from "./desk.js";

const desk = new Desk({ url: "/agent", threadId: thread });
window.desk = desk;

function Fields() {
  const { agent } = useAgent({ agentId: "desk" });
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
  useInterrupt({
    agentId: "desk",
    render: ({ interrupt, resolve }) => (
      <p>
        {interrupt?.message}
        <button id="yes" onClick={() => resolve({ approved: true, editedArgs: { text: "less" } })}>
          Yes
        </button>
        <button id="no" onClick={() => resolve({ approved: false })}>
          No
        </button>
      </p>
    ),
  });
  return (
    <div>
      <small id="status">{agent.isRunning ? "running" : "ready"}</small>
      <button id="stop" onClick={() => agent.abortRun()}>Stop</button>
      <input id="title" value={state.title ?? ""} onChange={(e) => agent.setState({ ...state, title: e.target.value })} />
    </div>
  );
}

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider agents__unsafe_dev_only={{ desk }}>
    <Fields />
    <div style={{ height: 600 }}>
      <CopilotChat agentId="desk" threadId={thread} />
    </div>
  </CopilotKitProvider>,
);
