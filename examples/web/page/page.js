// What the page shows of a chat, and what a person can do. What people and tools say
// becomes text nodes, and what models say Markdown without HTML.
import { events, follow, post } from "./follow.js";
import { isLink, render } from "./markdown.js";

const $ = (id) => document.getElementById(id);
const scroll = $("scroll"), text = $("text");

// The page of an employee shows the same chats, decides, and does not talk. What each of
// them may do, the server says: this is only what they are shown.
const staff = location.pathname.endsWith("/staff/");
document.body.classList.toggle("staff", staff);
if (staff) document.querySelector(".brand").textContent = "Support desk, employees";

// about says of fields what a person reads of them, and which one the person may edit.
// Others are shown behind these, by their names.
const about = {
  email: { text: staff ? "Where the desk writes to the customer" : "Where the desk writes to you", edit: !staff, type: "email" },
  memo: { text: "For colleagues: the customer does not see it", edit: staff },
  orders: { text: "Orders that were looked up" },
  refunds: { text: "By order", money: true },
  refunded: { text: "In all", money: true },
  lookups: { text: "How often the shop was asked" },
};
const euros = new Intl.NumberFormat("en", { style: "currency", currency: "EUR" });
const endings = { // of answers that are not whole, by their stop
  length: "The answer is cut off: it became too long", refused: "The model declines to answer this", filtered: "A filter has stopped the answer",
  repeated: "Stopped: the desk did the same again and again", budget: "Stopped: the budget is spent",
};
const callWords = { open: "at work", waiting: "waits", client: "waits" };

let chat = "", page = null, online = true, unfollow = () => {}, editing = null, outbox = [], pictures = [], fresh = true, stuck = true;

// el makes an element: el("p.quiet", {title: "…"}, "text", child).
function el(kind, props, ...children) {
  const [tag, ...classes] = kind.split(".");
  const e = Object.assign(document.createElement(tag), props);
  e.classList.add(...classes);
  e.append(...children.filter((c) => c != null && c !== false && c !== ""));
  return e;
}
const button = (label, onclick, kind = "") => el("button" + kind, { type: "button", onclick }, label);
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "");
const words = (name) => name.replaceAll("_", " ");
const at = (path = "", of = chat) => "api/threads/" + encodeURIComponent(of) + path;
const newID = () => Date.now().toString(36) + Math.random().toString(36).slice(2);

// lay makes the children of an element those of a list of {key, sig, make}. What has the
// same values in sig stays as it is, with its focus and what is open.
function lay(parent, items) {
  const old = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  let at = parent.firstElementChild;
  for (const { key, sig, make } of items) {
    let e = old.get(key);
    old.delete(key);
    if (!e || sig.some((v, i) => v !== e.sig[i])) {
      const was = e;
      e = make();
      e.dataset.key = key;
      e.sig = sig;
      const open = [...(was?.querySelectorAll("details") ?? [])].map((d) => d.open);
      e.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
      if (was && was === at) at = at.nextElementSibling;
      was?.remove();
    }
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

// shown returns a value with a name as text.
const shown = (name, value, money = ["price", "amount"].includes(name)) => (money && typeof value === "number" ? euros.format(value) : plain(value));

// table shows a value of a field, or the arguments of a call.
function table(value, money) {
  if (value === null || typeof value !== "object") return el("p.value", {}, shown("", value, money));
  return el("dl", {}, ...Object.entries(value).map(([k, v]) => {
    const inner = v && typeof v === "object" && !Array.isArray(v) ? table(v, money) : shown(k, v, money);
    return el("div", {}, Array.isArray(value) ? "" : el("dt", {}, k), el("dd", {}, inner));
  }));
}

// call shows a call of a tool: at work, waiting for an employee, or with its result.
function call(c, { text: written = "" }, isDecided) {
  if (c.state === "waiting") {
    const decide = (kind) => act("decisions", { id: newID(), decisions: [{ key: c.key, kind }] });
    return el("section.card", { ariaLabel: "Approval" },
      el("h2", {}, words(c.name) + (isDecided ? " is decided" : staff ? " needs your approval" : " waits for an employee")),
      c.reason && el("p", {}, c.reason), table(c.input), c.until && el("p.quiet", {}, "Until " + new Date(c.until).toLocaleString()),
      isDecided ? el("p.quiet", {}, "The desk goes on with it.")
        : staff ? el("p.buttons", {}, button("Approve", () => decide("approve"), ".primary"), button("Refuse", () => decide("refuse")))
          : el("p.quiet", {}, "You can go on to write. The chat goes on here when it is decided."));
  }
  const word = callWords[c.state] ?? c.state, brief = Object.entries(c.input ?? {}).map(([k, v]) => shown(k, v)).join(", ");
  return el("details.chip." + c.state, {},
    el("summary", {}, el("b", {}, words(c.name)), " ", el("span.brief", {}, brief), " ", el("span.word", {}, word)),
    el("p.quiet", {}, "Arguments"), el("pre", { tabIndex: 0 }, c.input ? plain(c.input) : written),
    c.by && el("p.quiet", {}, "Decided by an " + c.by), c.reason && el("p", {}, c.reason),
    c.output !== undefined && el("p.quiet", {}, "Result"), c.output !== undefined && el("pre", { tabIndex: 0 }, plain(c.output)));
}

// part shows a part of an item.
function part(p, item, decided) {
  switch (p.kind) {
    case "text":
      if (item.role === "user") return el("p.said", {}, p.text);
      return el("div.said.markdown" + (item.open ? ".live" : ""), { innerHTML: render((p.cut ? "… " : "") + (p.text ?? "")) });
    case "thought":
      return el("details.thought", {}, el("summary", {}, item.open ? "Thinks…" : "Thoughts"), el("p.quiet", {}, p.text));
    case "media":
      return isPicture(p.media) ? el("img", { src: p.media.url, alt: p.media.name ?? "Picture" }) : el("p.quiet", {}, "A file: " + (p.media.name ?? p.media.type));
    case "citation":
      return el("p.quiet", {}, isLink(p.citation.url ?? "") ? el("a", { href: p.citation.url, target: "_blank", rel: "noopener noreferrer" }, p.citation.title || p.citation.url) : p.citation.title || p.citation.text);
    case "call":
      return call(p.call, p, decided.has(p.call.key));
  }
}

// thumbs lets a customer say what an answer was worth.
function thumbs(item, noted) {
  const thumb = (text, label) => el("button.thumb", {
    type: "button", ariaPressed: String(noted === text), onclick: () => act("notes", { message: item.number, text: noted === text ? "" : text }),
  }, label);
  return el("p.thumbs", {}, thumb("up", "Helpful"), thumb("down", "Not helpful"));
}

// items are what the conversation consists of, behind it what is not in it yet.
function items() {
  const turns = page.turns ?? [], all = [...page.items, ...(page.pending ?? [])], list = [];
  const decided = new Set(turns.flatMap((t) => t.decides ?? [])), decides = [...decided].join();
  const known = new Set([...all, ...turns].map((i) => i.id)), last = new Map(all.map((item, i) => [item.turn, i]));
  const lasting = new Map();
  for (const t of turns) {
    const said = t.state === "stopped" ? "Stopped" : t.stop && (endings[t.stop] ?? "The answer was not finished");
    if (said && !lasting.has(t.of ?? t.id)) lasting.set(t.of ?? t.id, said);
  }
  const notes = new Map((page.notes ?? []).map((n) => [n.message, n.text]));
  const many = turns.filter((t) => t.state === "failed").length > 1;
  all.forEach((item, i) => {
    const turn = turns.find((t) => t.id === item.id), mine = item.role === "user", note = last.get(item.turn) === i && lasting.get(item.turn);
    const rated = !staff && !mine && item.number && last.get(item.turn) === i && item.parts.some((p) => p.kind === "text"), noted = notes.get(item.number);
    const sig = [item, rated, noted, turn?.state, note, many, item.parts.some((p) => p.call) && decides];
    list.push({ key: item.id, sig, make: () => {
      const buttons = !mine || staff ? [] :
        turn?.state === "waiting" ? ["Queued ", button("Remove", () => act("discard", { turn: item.id }), ".edit")] :
        turn?.state === "failed" ? ["Not answered ", many && button("Try again", () => act("retry", { turn: item.id }), ".edit"), many && button("Drop it", () => act("discard", { turn: item.id }), ".edit")] :
        item.number && item.parts.length === 1 && item.parts[0].kind === "text" ? [button("Edit", () => edit(item), ".edit")] : [];
      return el("li", {}, el("div." + (mine ? "user" : "answer") + (turn?.state === "waiting" ? ".faint" : ""), {},
        ...item.parts.map((p) => part(p, item, decided)), buttons.length > 0 && el("p.quiet.under", {}, ...buttons)), rated && thumbs(item, noted), note && el("p.quiet", {}, note));
    } });
  });
  const working = turns.some((t) => t.state === "running") && !page.pending?.some((i) => i.open && i.parts.length) && !all.at(-1)?.parts.some((p) => p.call?.state === "open");
  if (working) list.push({ key: "works", sig: [], make: () => el("li", {}, el("p.works", {}, el("span.hidden", {}, "The desk is at work"))) });
  keep(outbox.filter((o) => !known.has(o.id)));
  return list;
}

// sending are the messages that the server has not shown yet.
const sending = () => outbox.map((o) => ({ key: o.id, sig: [o.id], make: () => el("li", {},
  el("div.user.faint", {}, ...o.parts.map((p) => part(p, { role: "user" })), el("p.quiet", {}, "Sending"))) }));

// failures says of messages that were not answered what a customer can do about them.
function failures() {
  const failed = (page?.turns ?? []).filter((t) => t.state === "failed").map((t) => t.id);
  const each = async (verb) => { for (const turn of failed) await act(verb, { turn }); };
  const all = failed.length > 1 ? " all" : "";
  return failed.length === 0 ? [] : [{ key: "failed", sig: [failed.join()], make: () => el("div.card.bad", {},
    el("h2", {}, all ? failed.length + " messages could not be answered" : "The desk could not answer"),
    el("p", {}, staff ? "The customer can try again." : "Sorry, something went wrong on our side. Nothing that you wrote is lost."),
    !staff && el("p.buttons", {}, button("Try" + all + " again", () => each("retry"), ".primary"), button(all ? "Drop all" : "Drop it", () => each("discard")))) }];
}

// field shows a field, and lets a person edit it who may.
function field(name, value, { text: said, edit, type = "text", money } = {}) {
  const section = el("section" + (fresh ? "" : ".new"), {}, el("h3", {}, words(name)), said && el("p.quiet", {}, said));
  if (!edit) return section.append(table(value, money)), section;
  const input = el("input", { type, value: value ?? "", ariaLabel: words(name), placeholder: "Not known yet", name });
  const save = el("button", { hidden: true }, "Save");
  input.oninput = () => { save.hidden = input.value === (value ?? ""); };
  section.append(el("form", { onsubmit: async (e) => {
    e.preventDefault();
    if (await act("fields", { [name]: input.value.trim() || null })) save.hidden = true;
  } }, input, save));
  return section;
}

function fields() {
  const names = [...Object.keys(about).filter((n) => about[n].edit || n in page.fields), ...Object.keys(page.fields).filter((n) => !about[n])];
  return names.map((n) => ({ key: n, sig: [JSON.stringify(page.fields[n])], make: () => field(n, page.fields[n], about[n]) }));
}

let drawn = 0;
const show = () => { drawn ||= requestAnimationFrame(draw); };

function draw() {
  drawn = 0;
  const list = page ? items() : [], turns = page?.turns ?? [], calls = (page?.items ?? []).flatMap((i) => i.parts).filter((p) => p.call?.state === "waiting");
  list.push(...sending());
  const focus = document.activeElement;
  lay($("talk"), list);
  lay($("fields"), page ? fields() : []);
  lay($("failed"), failures());
  if (!focus.isConnected) (staff ? scroll : text).focus(); // what had it is done
  fresh &&= !page;
  const running = turns.some((t) => t.state === "running");
  $("empty").hidden = list.length > 0 || (chat !== "" && page === null);
  $("empty").firstElementChild.textContent = page === false ? "There is no such chat" : staff ? "Which chat do you want to see?" : "What can the desk do for you?";
  $("empty").children[1].textContent = staff ? "You decide about refunds above 100 euros, and note what colleagues should know." : "It looks up orders and refunds them. Above 100 euros an employee decides.";
  scroll.ariaBusy = String(running); // what is said is read aloud when it is whole
  $("stop").hidden = !running || text.value !== "" || pictures.length > 0;
  $("send").hidden = !$("stop").hidden;
  const status = !online ? "Reconnecting…" : calls.length ? (staff ? "Needs your approval" : "Waits for an employee") : running ? "At work" : "";
  if ($("status").textContent !== status) $("status").textContent = status;
}

// act does what a person wants with the chat. It reports whether that is done.
async function act(verb, body) {
  try {
    for (let tries = 1; ; tries++) {
      try {
        await post(at("/" + verb), body);
        break;
      } catch (err) {
        if (err.status !== 503 || tries === 10) throw err; // such as a field during a run
        await new Promise((done) => setTimeout(done, 500));
      }
    }
    note("");
    return true;
  } catch (err) {
    if (err.status !== 409 && err.status !== 404) note(err.status === 503 ? "The desk is at work. Please try again later." : err.message); // else somebody was faster, which is shown
    return false;
  }
}

// keep remembers what the server does not show yet: a message that was sent once more
// with its id is handled once.
function keep(messages) {
  outbox = messages;
  try {
    sessionStorage.setItem("outbox " + chat, JSON.stringify(outbox));
  } catch {} // it may be full
}

// deliver sends the outbox of the chat, one message after the other.
let delivered = Promise.resolve();
const deliver = () => (delivered = delivered.then(async () => {
  for (const to = chat; chat === to && outbox.some((o) => !o.sent);) {
    const next = outbox.find((o) => !o.sent);
    try {
      const sent = await post(at("/messages"), { id: next.id, parts: next.parts });
      next.sent = true;
      if (sent.status === "duplicate") keep(outbox.filter((o) => o !== next));
    } catch (err) {
      if (err.status === 0 || err.status >= 429) {
        online = err.status !== 0;
        await new Promise((done) => setTimeout(done, 500));
      } else {
        keep(outbox.filter((o) => o !== next));
        text.value ||= next.parts.find((p) => p.text)?.text ?? "";
        note(err.message);
      }
    }
    show();
  }
}));

async function send() {
  const said = text.value.trim(), parts = [...pictures.map((media) => ({ kind: "media", media })), ...(said ? [{ kind: "text", text: said }] : [])];
  if (parts.length === 0) return;
  try {
    const message = { id: newID(), parts };
    const to = editing ? (await post(at("/messages"), { ...message, replaces: editing })).thread : chat || (await post("api/threads")).thread;
    const wasEdit = editing;
    type("");
    note("");
    attach([]);
    stuck = true;
    if (to === chat) {
      keep([...outbox, message]);
      show();
      deliver();
      return;
    }
    firstOf = wasEdit ? null : { chat: to, message };
    location.hash = to;
  } catch (err) {
    note(err.message);
  }
}
let firstOf = null; // the message that begins a chat, which is opened next

// type puts a text into the box, in place of what is there.
function type(said) {
  text.value = said;
  text.dispatchEvent(new Event("input"));
  text.focus();
}

function edit(item) {
  type(item.parts[0].text);
  note("The answer begins a new chat, with all that was said before.");
  editing = item.id;
}

function note(said) {
  editing = null;
  $("note").hidden = !said;
  $("note").firstElementChild.textContent = said;
}

// attach shows the pictures that the next message has.
function attach(list) {
  pictures = list;
  $("pictures").replaceChildren(...list.map((p) => el("figure", {}, el("img", { src: p.url, alt: p.name }),
    el("button.remove", { type: "button", ariaLabel: "Remove " + p.name, onclick: () => attach(pictures.filter((q) => q !== p)) }, "×"))));
  show();
}

// isPicture reports whether media can be shown: one of the server, or in the page.
const isPicture = (m) => m.url.startsWith("data:image/") || (m.type?.startsWith("image/") && m.url.startsWith(new URL("api/files/", location).pathname));

// picture uploads a picture of a file, at most 1 280 pixels wide and high, without what a
// camera has noted in it.
async function picture(file) {
  const bitmap = await createImageBitmap(file), scale = Math.min(1, 1280 / Math.max(bitmap.width, bitmap.height));
  const canvas = el("canvas", { width: Math.ceil(bitmap.width * scale), height: Math.ceil(bitmap.height * scale) }), on = canvas.getContext("2d");
  on.fillStyle = "white";
  on.fillRect(0, 0, canvas.width, canvas.height);
  on.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const body = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  const answer = await fetch("api/files?name=" + encodeURIComponent(file.name), { method: "POST", body });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

$("file").onchange = async () => {
  try {
    attach([...pictures, ...(await Promise.all([...$("file").files].map(picture)))].slice(0, 4));
  } catch {
    note("This file is no picture that can be shown, or could not be uploaded.");
  }
  $("file").value = "";
  text.focus();
};

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

// rows are those of the list of chats, by their ids.
let rows = new Map();

function list() {
  const latest = [...rows.values()].sort((a, b) => b.active.localeCompare(a.active));
  lay($("list"), latest.map((c) => ({ key: c.id, sig: [c.title, c.waiting, c.failed, c.running, when(c.active), c.id === chat], make: () => {
    const mark = c.waiting ? (staff ? "needs you" : "waits") : c.failed ? "failed" : c.running ? "at work" : when(c.active);
    const link = el("a", { href: "#" + c.id }, el("span.name", {}, c.title || "New chat"), el("span." + (c.waiting ? "mark" : "quiet"), {}, mark));
    if (c.id === chat) link.ariaCurrent = "page";
    return el("li", {}, link);
  } })));
  $("rename").hidden = !rows.has(chat);
  $("title").textContent = rows.get(chat)?.title || (chat || !staff ? "New chat" : "Chats of customers");
  document.title = $("title").textContent + " · Support desk";
}

events(() => "api/events", {
  opened: async () => {
    const all = await (await fetch("api/threads")).json().catch(() => []);
    rows = new Map(all.map((t) => [t.id, t]));
    list();
  },
  told: (t) => {
    if (t.deleted) rows.delete(t.id);
    else rows.set(t.id, t);
    list();
  },
});

// open shows the chat that the address names.
async function open() {
  unfollow();
  unfollow = () => {};
  const to = chat = decodeURIComponent(location.hash.slice(1));
  outbox = JSON.parse(sessionStorage.getItem("outbox " + chat) ?? "[]").map((o) => ({ ...o, sent: false }));
  if (firstOf?.chat === chat) keep([firstOf.message]);
  firstOf = null;
  for (const id of ["talk", "fields", "failed"]) $(id).replaceChildren();
  [page, online, fresh, stuck] = [null, true, true, true];
  note("");
  for (const e of document.querySelectorAll(":popover-open")) e.hidePopover();
  list();
  show();
  if (!staff) text.focus();
  await deliver(); // a new chat begins with its first message
  if (chat === to && chat) unfollow = follow(at(), (next, reached) => { [page, online] = [next, reached]; show(); });
}

for (const said of ["Where is order #W1003?", "Refund order #W1001, please.", "#W1002 arrived broken. Refund it."]) {
  if (!staff) $("suggestions").append(button(said, () => { type(said); send(); }));
}
$("composer").onsubmit = (e) => { e.preventDefault(); send(); };
$("rename").onclick = () => {
  const title = prompt("The title of this chat", rows.get(chat)?.title);
  if (title !== null) act("title", { title: title.trim() });
};
$("stop").onclick = () => act("stop", {});
$("note").lastElementChild.onclick = () => { note(""); (staff ? scroll : text).focus(); };
text.onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
};
text.oninput = () => {
  text.style.height = "auto";
  text.style.height = text.scrollHeight + "px";
  show();
};
window.onhashchange = open;
setInterval(list, 60000); // how long ago it was
open();
