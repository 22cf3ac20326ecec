import { HttpAgent } from "@ag-ui/client";

// Desk is the agent of docs/agui.md.
export class Desk extends HttpAgent {
  // A page that is opened shows what is there.
  connect(input) {
    return this.run(input);
  }
  // While calls wait, a message is sent, and one call is decided.
  runAgent(...args) {
    this.pendingInterrupts = [];
    return super.runAgent(...args);
  }
  // Stop ends the run on the server as well.
  abortRun() {
    super.abortRun();
    const body = { threadId: this.threadId, runId: crypto.randomUUID(), forwardedProps: { stop: true } };
    fetch(this.url, { method: "POST", headers: { ...this.headers, "Content-Type": "application/json" }, body: JSON.stringify(body) });
  }
}

export const thread = new URLSearchParams(location.search).get("thread") ?? "1";
