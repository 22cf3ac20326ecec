// A page with assistant-ui, as docs/agui.md says.
import { useMemo } from "react";
import { createRoot } from "react-dom/client";
import { ActionBarPrimitive, AssistantRuntimeProvider, ComposerPrimitive, ExportedMessageRepository, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { fromAgUiMessages, useAgUiInterrupts, useAgUiRuntime, useAgUiState, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { Desk, thread } from "./desk.js";

// load returns the messages of the thread: it reads one snapshot.
const load = () =>
  new Promise((done) => {
    const desk = new Desk({ url: "/agent", threadId: thread });
    desk.runAgent({}, {
      onMessagesSnapshotEvent: ({ event }) => done({ ...ExportedMessageRepository.fromArray(fromAgUiMessages(event.messages)), unstable_resume: false }),
    }).catch(() => done(ExportedMessageRepository.fromArray([])));
  });

const Call = ({ toolName, argsText, result, status }) => (
  <pre className="call">
    {toolName} {argsText} {status?.type} {JSON.stringify(result ?? "")}
  </pre>
);
const parts = { Text: ({ text }) => <p>{text}</p>, Reasoning: ({ text }) => <i>{text}</i>, tools: { Fallback: Call } };
const User = () => (
  <MessagePrimitive.Root className="user">
    <MessagePrimitive.Content />
    <ActionBarPrimitive.Root><ActionBarPrimitive.Edit className="edit">Edit</ActionBarPrimitive.Edit></ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
);
const Edit = () => (
  <MessagePrimitive.Root className="user">
    <ComposerPrimitive.Root><ComposerPrimitive.Input id="edited" /><ComposerPrimitive.Send id="again">Send</ComposerPrimitive.Send></ComposerPrimitive.Root>
  </MessagePrimitive.Root>
);
const Answer = () => (
  <MessagePrimitive.Root className="assistant">
    <MessagePrimitive.Content components={parts} />
    <ActionBarPrimitive.Root><ActionBarPrimitive.Reload className="regenerate">Again</ActionBarPrimitive.Reload></ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
);

function Side() {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const state = useAgUiState() ?? {};
  const decide = (approved) => submit(interrupts.map((i) => ({ interruptId: i.id, status: "resolved", payload: { approved } })));
  return (
    <div>
      {interrupts.map((i) => (
        <p key={i.id}>
          {i.message}
          <button id="yes" onClick={() => decide(true)}>Yes</button>
          <button id="no" onClick={() => decide(false)}>No</button>
        </p>
      ))}
      <input id="title" readOnly value={state.title ?? ""} />
    </div>
  );
}

function Page() {
  const agent = useMemo(() => new Desk({ url: "/agent", threadId: thread }), []);
  const runtime = useAgUiRuntime({ agent, adapters: { history: { load, async append() {} } } });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <Side />
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage: User, AssistantMessage: Answer, EditComposer: Edit }} />
        <small id="status">
          <ThreadPrimitive.If running>running</ThreadPrimitive.If>
          <ThreadPrimitive.If running={false}>ready</ThreadPrimitive.If>
        </small>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input id="say" />
          <ComposerPrimitive.Send id="send">Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel id="stop">Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
