// How a page follows a chat, whatever it looks like. The server tells all of the chat,
// and then its changes. The types are those of the Go package workspace/page.

// post sends what a person does. An error has the status of the answer, or 0 if the
// server was not reached.
export async function post(url, body = {}) {
  let answer;
  try {
    answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw Object.assign(new Error("The server is not reached."), { status: 0 });
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(said.error ?? answer.statusText), { status: answer.status });
  return said;
}

// apply returns the page with a change, as page.Page.Apply does. It does not change
// what the old page has: what is the same object looks the same.
export function apply(page, c) {
  if (c.page) return c.page;
  const next = { ...page, version: c.version, items: page.items.filter((i) => !c.removed?.includes(i.id)) };
  for (const { behind, item } of c.items ?? []) {
    const at = next.items.findIndex((i) => i.id === item.id);
    if (at >= 0) next.items[at] = item;
    else next.items.splice(next.items.findIndex((i) => i.id === behind) + 1, 0, item);
  }
  if (c.fields) next.fields = Object.fromEntries(Object.entries({ ...page.fields, ...c.fields }).filter(([, value]) => value !== null));
  if (c.tail) Object.assign(next, { pending: c.tail.pending, turns: c.tail.turns, notes: c.tail.notes });
  if (c.delta) next.pending = next.pending?.map((i) => (i.id === c.delta.item ? grown(i, c.delta) : i));
  return next;
}

// grown returns an item with a piece more of the answer that is being made.
function grown(item, d) {
  const part = item.parts.find((p) => p.id === d.part) ??
    { id: d.part, kind: d.kind, text: "", cut: d.cut, call: d.kind === "call" ? { name: d.name, state: "open" } : undefined };
  const more = { ...part, text: (part.text ?? "") + d.text };
  return { ...item, parts: item.parts.includes(part) ? item.parts.map((p) => (p === part ? more : p)) : [...item.parts, more] };
}

// events listens to a URL while somebody looks at the page: browsers have six
// connections to a server, for all tabs together. A browser that has lost the
// connection asks again by itself, with the id of the last event. The function that it
// returns ends it.
export function events(url, { opened = () => {}, told, lost = () => {} }) {
  let source, again, ended = false;
  const close = () => { source?.close(); clearTimeout(again); };
  const open = () => {
    close();
    if (document.hidden || ended) return;
    source = new EventSource(url());
    source.onopen = opened;
    source.onmessage = (e) => told(JSON.parse(e.data));
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      if (refused) again = setTimeout(open, 1000);
      lost(refused);
    };
  };
  const end = () => { ended = true; close(); document.removeEventListener("visibilitychange", open); };
  document.addEventListener("visibilitychange", open);
  open();
  return end;
}

// follow calls show with the page of the chat at a URL, each time when it has changed,
// and whether the server is reached, until the function that it returns is called. The
// page is null as long as nothing is known, and false if there is no such chat.
export function follow(url, show) {
  let page = null;
  const end = events(() => url + "/events" + (page ? "?from=" + encodeURIComponent(page.version) : ""), {
    opened: () => show(page, true),
    told: (change) => show(page = apply(page, change), true),
    lost: async (refused) => {
      show(page, false);
      if (refused && (await fetch(url).catch(() => null))?.status === 404) { end(); show(false, true); }
    },
  });
  return end;
}
