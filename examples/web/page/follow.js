// How a page follows a chat by its events, whatever it looks like. A snapshot says
// what is stored. The events say when it has changed, and what is not stored yet:
// the text that the model is writing, and the fields that a run has set.

const utf8 = new TextEncoder();

// post sends what a person does. An error has the status of the answer, or 0 if
// the server was not reached.
export async function post(url, body = {}) {
  let answer;
  try {
    answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw Object.assign(new Error("The server is not reached."), { status: 0 });
  }
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.json();
}

// follow calls show with what there is of the chat at a URL, each time when it has
// changed, until the function that it returns is called:
//
//   view    the JSON of workspace.View, or null as long as there is none
//   fields  the names and descriptions of the fields
//   values  what the fields have now, in a run that is not committed as well
//   window  the number of the message with which begins what the model reads
//   live    the text that the model is writing, or null
//   online  whether the server is reached
export function follow(url, show) {
  const now = { view: null, fields: [], values: {}, window: 0, live: null, online: true };
  let source = null, seq = 0, changed = null, loading = false, again = false, closed = false;

  // load takes a snapshot. It is called while another one is on its way, too.
  async function load() {
    again = true;
    if (loading) return;
    loading = true;
    while (again && !closed) {
      again = false;
      const asked = seq;
      try {
        const answer = await fetch(url);
        if (!answer.ok) throw new Error(answer.statusText);
        Object.assign(now, await answer.json(), { online: true });
        forget(asked);
      } catch {
        now.online = false;
        again = true;
      }
      update();
      await new Promise((done) => setTimeout(done, again ? 500 : 0));
    }
    loading = false;
  }

  // forget drops what is stored now, or will never be: of runs that have ended
  // when the snapshot was asked for.
  function forget(asked) {
    const run = now.view.run?.id;
    if (changed && changed.seq <= asked && changed.run !== run) changed = null;
    const live = now.live;
    const stored = live && now.view.messages?.some((m) => m.number >= live.message);
    if (stored || (live && live.seq <= asked && live.run !== run)) now.live = null;
  }

  function update() {
    if (closed) return;
    now.values = { ...now.view?.state.values, ...changed?.values };
    show(now);
  }

  function hear(event) {
    const missed = event.seq !== seq + 1;
    seq = event.seq;
    switch (event.kind) {
      case "delta": {
        let live = now.live;
        if (live?.message !== event.message || live.end !== event.offset) { // the text begins, or begins anew
          live = { run: event.run_id, message: event.message, text: event.offset ? "… " : "", seq };
        }
        live.text += event.delta;
        live.end = event.offset + utf8.encode(event.delta).length;
        now.live = live;
        update();
        break;
      }
      case "change":
        if (changed?.run !== event.run_id) changed = { run: event.run_id, values: {}, seq };
        for (const e of event.effects ?? []) {
          if (e.part !== "field") continue;
          if (e.kind === "set") changed.values[e.field] = e.value;
          else if (e.kind === "delete") changed.values[e.field] = undefined;
          else delete changed.values[e.field]; // a piece of a list: the snapshot of the commit has it all
        }
        update();
        break;
      case "started": // what an earlier attempt has not committed is lost
        changed = null;
        now.live = null;
        load();
        break;
      default:
        load();
    }
    if (missed) load();
  }

  function open() {
    source = new EventSource(url + "/events");
    source.onopen = () => (seq = 0);
    source.onmessage = (message) => hear(JSON.parse(message.data));
    source.onerror = () => {
      now.online = false;
      update();
      if (source.readyState === EventSource.CLOSED && !closed) setTimeout(look, 500); // otherwise the browser tries again
    };
  }

  // look follows as long as somebody looks at the page: browsers have six
  // connections to a server, for all tabs together.
  function look() {
    source?.close();
    if (!document.hidden && !closed) open();
  }
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    closed = true;
    document.removeEventListener("visibilitychange", look);
    source?.close();
  };
}
