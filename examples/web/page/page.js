// What the page shows of a chat, and what a person can do. All that people, models
// and tools say becomes text nodes, never markup.
import { follow, post } from "./follow.js";

const $ = (id) => document.getElementById(id);
const scroll = $("scroll"), text = $("text");
let chat = "", now = { values: {} }, unfollow = () => {}, editing = null, outbox = [], fresh = true, stuck = true, stopping = null;

// el makes an element: el("p.quiet", {title: "…"}, "text", child).
function el(kind, props, ...children) {
  const [tag, ...classes] = kind.split(".");
  const e = Object.assign(document.createElement(tag), props);
  e.classList.add(...classes);
  e.append(...children.filter((c) => c != null && c !== false));
  return e;
}
const button = (label, onclick, kind = "") => el("button" + kind, { type: "button", onclick }, label);
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "");
const words = (name) => name.replaceAll("_", " ");
const at = (path = "") => "threads/" + encodeURIComponent(chat) + path;
const newID = () => Date.now().toString(36) + Math.random().toString(36).slice(2);

// lay makes the children of an element those of a list of {key, sig, make}. What
// has not changed stays as it is, with its focus and what is open.
function lay(parent, items) {
  const old = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  let at = parent.firstElementChild;
  for (const { key, sig, make } of items) {
    let e = old.get(key);
    old.delete(key);
    if (!e || e.sig !== sig) {
      const was = e;
      e = make();
      e.dataset.key = key;
      e.sig = sig;
      if (was?.querySelector("details[open]")) e.querySelector("details")?.setAttribute("open", "");
      if (was && was === at) at = at.nextElementSibling;
      was?.remove();
    }
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

// table shows a value of a field, or the arguments of a call.
function table(value) {
  if (value === null || typeof value !== "object") return el("p.value", {}, plain(value));
  const rows = Object.entries(value).map(([k, v]) => {
    const inner = v && typeof v === "object" && !Array.isArray(v) ? table(v) : plain(v);
    return el("div", {}, Array.isArray(value) ? "" : el("dt", {}, k), el("dd", {}, inner));
  });
  return el("dl", {}, ...rows);
}

// call shows a call of a tool: at work, waiting for a person, or with its result.
function call({ tool, result, waits, decided }) {
  if (waits) {
    const decide = (kind) => act("messages", { id: newID(), decisions: [{ key: tool.key, kind }] });
    return el("section.card", { ariaLabel: "Approval" },
      el("h2", {}, words(tool.name) + (decided ? " is decided" : " needs your approval")), waits.reason && el("p", {}, waits.reason),
      table(tool.input), waits.until && el("p.quiet", {}, "Until " + new Date(waits.until).toLocaleString()),
      decided ? el("p.quiet", {}, "The desk goes on with it.")
        : el("p.buttons", {}, button("Approve", () => decide("approve"), ".primary"), button("Refuse", () => decide("refuse"))));
  }
  const word = { refuse: "refused", expired: "expired" }[result?.decision?.kind] ?? (!result ? "at work" : result.is_error ? "failed" : "done");
  const brief = Object.values(tool.input ?? {}).map(plain).join(", ");
  return el("details.chip." + word.replace(" ", "-"), {},
    el("summary", {}, el("b", {}, words(tool.name)), " ", el("span.brief", {}, brief), " ", el("span.word", {}, word)),
    el("p.quiet", {}, "Arguments"), el("pre", { tabIndex: 0 }, plain(tool.input)),
    result && el("p.quiet", {}, "Result"), result && el("pre", { tabIndex: 0 }, plain(result.content)));
}

// endings say of an answer why it is not whole, by its stop.
const endings = {
  length: "The answer is cut off: it became too long", refused: "The model declines to answer this", filtered: "A filter has stopped the answer",
  repeated: "Stopped: the desk did the same again and again", budget: "Stopped: the budget is spent",
};

// items are what the conversation consists of.
function items() {
  const v = now.view, list = [], add = (key, sig, make) => list.push({ key, sig: JSON.stringify(sig), make: () => el("li", {}, make()) });
  const bubble = (said, kind, ...more) => el("div.user" + kind, {}, el("p.said", {}, said), ...more);
  if (!v) return list;
  const messages = v.messages ?? [], queue = v.queue ?? [], dead = v.dead_letters ?? [], asked = v.run?.message;
  const results = Map.groupBy(messages.map((m) => m.message).filter((m) => m.type === "tool_result"), (m) => m.tool.key);
  const waiting = new Map((v.suspended ?? []).map((s) => [s.key, s])), runs = new Set(messages.map((m) => m.run));
  const decided = [asked, ...queue].flatMap((m) => m?.decisions ?? []).map((d) => d.key);
  const notes = new Map((v.ended ?? []).map((e) => [e.id, e.as === "cancelled" ? "Stopped" : e.stop && (endings[e.stop] ?? "The answer was not finished")]));
  messages.forEach(({ number, message: m, run }, i) => {
    if (number === now.window) add("window", 0, () => el("p.window", {}, "The model no longer reads what is above"));
    if (m.type === "tool_call") {
      for (const [n, tool] of m.tools.entries()) {
        const it = { tool, result: results.get(tool.key)?.[0], waits: waiting.get(tool.key), decided: decided.includes(tool.key) };
        add(`${number}.${n}`, it, () => call(it));
        list.at(-1).busy = !it.result;
      }
    }
    if (m.type === "text" && m.role === "user") {
      add(`${number}`, m, () => bubble(plain(m.content), "", button("Edit", () => edit(number, plain(m.content)), ".edit")));
    } else if (m.type !== "tool_result" && m.content) add(`${number}`, m, () => el("p.said", {}, plain(m.content)));
    if (notes.get(run) && messages[i + 1]?.run !== run) add(`ended ${run}`, notes.get(run), () => el("p.quiet", {}, notes.get(run)));
  });
  if (asked?.content && !runs.has(asked.id)) add(`run ${asked.id}`, asked, () => bubble(plain(asked.content.content), ""));
  if (now.live) add("live", now.live.message, () => el("p.said.live", {}, ""));
  else if (v.run && !list.at(-1)?.busy) add("works", 0, () => el("p.works", {}, el("span.hidden", {}, "The desk is at work")));
  for (const d of dead) {
    add(`dead ${d.message.id}`, d, () => el("div", {}, d.message.content && !runs.has(d.message.id) && bubble(plain(d.message.content.content), ""),
      el("section.card.bad", {}, el("h2", {}, "The desk could not answer this"), el("p.quiet", {}, d.reason),
        el("p.buttons", {}, button("Try again", () => act("retry", { id: d.message.id }), ".primary"),
          button("Remove", () => act("discard", { id: d.message.id }))))));
  }
  for (const q of queue) {
    if (q.content) add(`queue ${q.id}`, q, () => bubble(plain(q.content.content), ".faint", el("p.quiet", {}, "Queued ",
      button("Remove", () => act("discard", { id: q.id }), ".edit"))));
  }
  const known = new Set([...runs, asked?.id, ...[...queue, ...dead.map((d) => d.message), ...(v.ended ?? [])].map((m) => m.id)]);
  keep(outbox.filter((o) => !known.has(o.id)));
  for (const o of outbox) add(`out ${o.id}`, o, () => bubble(o.text, ".faint", el("p.quiet", {}, "Sending")));
  return list;
}

function show(next) {
  now = next;
  const list = items(), v = now.view, waits = v?.suspended?.length;
  lay($("talk"), list);
  if (v && now.live) $("talk").querySelector(".live").textContent = now.live.text;
  lay($("fields"), now.fields.filter((f) => now.values[f.name] !== undefined).map((f) => ({
    key: f.name, sig: JSON.stringify(now.values[f.name]), make: () => el("section" + (fresh ? "" : ".new"), {},
      el("h3", {}, words(f.name)), el("p.quiet", {}, f.description), table(now.values[f.name])),
  })));
  fresh &&= !v;
  $("empty").hidden = list.length > 0 || (chat !== "" && !v);
  scroll.ariaBusy = String(!!v?.run); // what is said is read aloud when it is whole
  $("stop").hidden = !v?.run || text.value !== "";
  $("send").hidden = !$("stop").hidden;
  const status = !now.online ? "Reconnecting…" : waits ? "Needs your approval" : v?.run ? "At work" : "";
  if ($("status").textContent !== status) $("status").textContent = status;
  if (stopping && v?.ended?.some((e) => e.id === stopping.id)) {
    if (!v.messages?.some((m) => m.run === stopping.id) && !text.value) type(plain(stopping.content?.content ?? "")); // it is gone with its run
    stopping = null;
  }
}

async function act(verb, body) {
  try {
    await post(at("/" + verb), body);
  } catch (err) {
    if (err.status !== 409) note(err.message); // else somebody was faster, which the next snapshot shows
  }
  text.focus();
}

// keep remembers what was not acknowledged: a message that was sent once more with
// its id is handled once.
function keep(messages) {
  outbox = messages;
  sessionStorage.setItem("outbox " + chat, JSON.stringify(outbox));
}

async function deliver() {
  for (const to = chat, url = at("/messages"); chat === to && outbox.some((o) => !o.sent);) {
    const next = outbox.find((o) => !o.sent);
    try {
      await post(url, { id: next.id, text: next.text });
      next.sent = true;
    } catch (err) {
      if (err.status === 0 || err.status === 503) await new Promise((done) => setTimeout(done, 500));
      else {
        keep(outbox.filter((o) => o !== next));
        text.value ||= next.text;
        note(err.message);
      }
    }
  }
}

async function send() {
  const said = text.value.trim();
  if (!said) return;
  try {
    const to = chat && !editing ? chat : await post("threads", editing ? { from: chat, before: editing } : {});
    type("");
    const more = { id: newID(), text: said };
    if (to === chat) keep([...outbox, more]);
    else sessionStorage.setItem("outbox " + to, JSON.stringify([more]));
    location.hash = to;
    stuck = true;
    show(now);
    deliver();
  } catch (err) {
    note(err.message);
  }
}

// type puts a text into the box, in place of what is there.
function type(said) {
  text.value = said;
  text.dispatchEvent(new Event("input"));
  text.focus();
}

function edit(number, said) {
  type(said);
  note("The answer begins a new chat, with all that was said before.");
  editing = number;
}

function note(said) {
  editing = null;
  $("note").hidden = !said;
  $("note").firstElementChild.textContent = said;
}

// The conversation stays at its end, unless a person has scrolled up.
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };
for (const e of [scroll, $("talk")]) new ResizeObserver(() => stuck && toEnd()).observe(e);
scroll.onscroll = () => {
  stuck = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
  $("newest").hidden = stuck;
};
$("newest").onclick = toEnd;

function when(time) {
  const minutes = Math.round((Date.now() - new Date(time)) / 60000);
  if (minutes < 60) return minutes < 1 ? "now" : minutes + " min";
  return minutes < 1440 ? Math.round(minutes / 60) + " h" : new Date(time).toLocaleDateString();
}

// chats shows the list, the latest first.
async function chats() {
  try {
    const list = await (await fetch("threads")).json();
    lay($("list"), list.map((c) => ({ key: c.id, sig: JSON.stringify([c, when(c.active), chat]), make: () => {
      const mark = c.waiting ? "needs you" : c.failed ? "failed" : c.running ? "at work" : when(c.active);
      const link = el("a", { href: "#" + c.id }, el("span.name", {}, c.title), el("span." + (c.waiting ? "mark" : "quiet"), {}, mark));
      if (c.id === chat) link.ariaCurrent = "page";
      return el("li", {}, link);
    } })));
    $("title").textContent = list.find((c) => c.id === chat)?.title ?? "New chat";
    document.title = $("title").textContent + " · Support desk";
  } catch {} // the next one comes
}

// open shows the chat that the address names.
function open() {
  unfollow();
  chat = decodeURIComponent(location.hash.slice(1));
  outbox = JSON.parse(sessionStorage.getItem("outbox " + chat) ?? "[]").map((o) => ({ ...o, sent: false }));
  $("talk").replaceChildren();
  $("fields").replaceChildren();
  fresh = stuck = true;
  note("");
  for (const e of document.querySelectorAll(":popover-open")) e.hidePopover();
  show({ view: null, fields: [], values: {}, window: 0, live: null, online: true });
  let version;
  unfollow = chat ? follow(at(), (next) => {
    show(next);
    const v = next.view, is = JSON.stringify([v?.version, v?.run?.id, v?.suspended?.length, v?.dead_letters?.length]);
    if (is !== version) chats();
    version = is;
  }) : () => {};
  chats();
  deliver();
  text.focus();
}

for (const said of ["Where is order #W1003?", "Refund order #W1001, please.", "#W1002 arrived broken. Refund it."]) {
  $("suggestions").append(button(said, () => { type(said); send(); }));
}
$("composer").onsubmit = (e) => { e.preventDefault(); send(); };
$("stop").onclick = () => { stopping = now.view.run.message; act("stop", { run: now.view.run.id }); };
$("note").lastElementChild.onclick = () => { note(""); text.focus(); };
text.onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
};
text.oninput = () => {
  text.style.height = "auto";
  text.style.height = text.scrollHeight + "px";
  show(now);
};
window.onhashchange = open;
setInterval(() => document.hidden || chats(), 5000);
open();
