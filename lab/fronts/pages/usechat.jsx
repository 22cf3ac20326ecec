// A page as docs/aisdk.md says.
import { useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

const id = new URLSearchParams(location.search).get("thread") ?? "1";

function Part({ p, approve }) {
  switch (true) {
    case p.type === "text":
      return <p>{p.text}</p>;
    case p.type === "reasoning":
      return <i>{p.text}</i>;
    case p.type === "file":
      return <img src={p.url} width="32" alt={p.mediaType} />;
    case p.type.startsWith("tool-"):
      return (
        <pre className="call">
          {p.type.slice(5)} {JSON.stringify(p.input)} {p.state} {JSON.stringify(p.output ?? p.errorText ?? "")}
          {p.state === "approval-requested" && (
            <span>
              {p.approval.requestReason}
              <button id="yes" onClick={() => approve({ id: p.approval.id, approved: true })}>Yes</button>
              <button id="no" onClick={() => approve({ id: p.approval.id, approved: false })}>No</button>
            </span>
          )}
        </pre>
      );
  }
  return null;
}

function Chat({ initial }) {
  const [fields, setFields] = useState(initial.state);
  const [text, setText] = useState("");
  const [edits, setEdits] = useState();
  const file = useRef();
  const { messages, sendMessage, status, error, regenerate, addToolApprovalResponse } = useChat({
    id,
    messages: initial.messages,
    resume: true,
    transport: new DefaultChatTransport({ api: "/api/chat/" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: (d) => d.type === "data-state" && setFields(d.data),
  });
  const send = (e) => {
    e.preventDefault();
    sendMessage({ text, files: file.current.files.length ? file.current.files : undefined, messageId: edits });
    setText("");
    setEdits();
  };
  const stop = () => fetch(`/api/chat/${id}/stop`, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  return (
    <div>
      <small id="status">{status === "streaming" || status === "submitted" ? "running" : "ready"}</small>
      {messages.map((m) => (
        <div key={m.id} className={m.role}>
          {m.parts.map((p, i) => <Part key={i} p={p} approve={addToolApprovalResponse} />)}
          {m.role === "user" && <button className="edit" onClick={() => setEdits(m.id)}>Edit</button>}
        </div>
      ))}
      {error && <p id="error">{error.message}</p>}
      <form onSubmit={send}>
        <textarea value={text} onChange={(e) => setText(e.target.value)} />
        <input type="file" id="file" ref={file} />
        <button id="send">Send</button>
        <button type="button" id="stop" onClick={stop}>Stop</button>
        <button type="button" id="regenerate" onClick={() => regenerate()}>Again</button>
      </form>
      <input id="title" readOnly value={fields.title ?? ""} />
    </div>
  );
}

const initial = await (await fetch(`/api/chat/${id}`)).json();
createRoot(document.getElementById("root")).render(<Chat initial={initial} />);
