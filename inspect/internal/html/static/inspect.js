"use strict";
// The pages work without this script. It adds live updates, pages that follow
// their controls, and keys. Its hooks are attributes:
//   data-fragment=NAME  a part of the page that ?fragment=NAME answers with
//   data-row=KEY        an entry of a list; rows of tables need no key
//   data-hotkey=KEY     a link or button that a key activates
//   data-auto           a form that is sent when one of its controls changes
(() => {
const body = document.body, say = document.getElementById("live");
const rowQuery = ".rows>tbody>tr,[data-row]";
const isRow = n => n.nodeType === 1 && n.matches(rowQuery);
// Storage may be refused to the page.
const stored = {
  get(k) { try { return localStorage.getItem(k) } catch { return null } },
  set(k, v) { try { localStorage.setItem(k, v) } catch { /* for this page only */ } },
};

// keyOf returns what makes two nodes the same although they are in other places.
function keyOf(n) {
  if (n.nodeType !== 1) return "";
  if (n.id) return "#" + n.id;
  if (n.dataset.row) return "=" + n.dataset.row;
  if (n.dataset.fragment) return "f" + n.dataset.fragment;
  const th = n.localName === "tr" && n.querySelector("th[scope=row]");
  return th ? "t" + th.textContent : "";
}

// shown returns the text of a row without the times, which change by themselves.
function shown(n) {
  const copy = n.cloneNode(true);
  for (const t of copy.querySelectorAll("time,[data-volatile]")) t.remove();
  return copy.textContent;
}

// morph makes one node like another. What is equal stays in place, and with it
// the focus, the selection, the scroll position and opened details.
function morph(from, to, changed) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(document.importNode(to, true));
    return;
  }
  if (from.nodeType !== 1) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  const row = isRow(to), before = row && shown(from);
  for (const {name} of [...from.attributes]) if (!to.hasAttribute(name) && name !== "open" && name !== "tabindex") from.removeAttribute(name);
  for (const {name, value} of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  morphChildren(from, to, changed);
  if (row && shown(from) !== before) mark(from, changed);
}

function mark(row, changed) {
  row.classList.add("changed");
  const name = row.dataset.row || (row.querySelector("th") || {}).textContent;
  if (name) changed.push(name.trim());
}

function morphChildren(from, to, changed) {
  const keyed = new Map();
  for (const c of from.children) if (keyOf(c)) keyed.set(keyOf(c), c);
  let at = from.firstChild;
  for (const n of [...to.childNodes]) {
    const key = keyOf(n), old = key ? keyed.get(key) : at && !keyOf(at) && at.nodeName === n.nodeName ? at : null;
    if (old) {
      keyed.delete(key);
      if (old === at) at = at.nextSibling; else from.insertBefore(old, at);
      morph(old, n, changed);
    } else {
      const added = document.importNode(n, true);
      from.insertBefore(added, at);
      if (isRow(added)) mark(added, changed);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// load returns the document at an address, or null if there is none.
async function load(url) {
  const r = await fetch(url, {headers: {Accept: "text/html"}, redirect: "error"});
  if (!r.ok) return null;
  return new DOMParser().parseFromString(await r.text(), "text/html");
}

// Live updates: an open page asks for itself again, and gets nothing if nothing has changed.
let timer, seen = "";

function look() {
  clearTimeout(timer);
  if (body.dataset.live && !document.hidden) timer = setTimeout(update, +body.dataset.live);
}

// update brings the fragments of the page up to date.
async function update() {
  const url = location.href;
  try {
    const r = await fetch(url, {headers: {"If-None-Match": seen}, redirect: "error"});
    if (r.status !== 304 && r.ok && body.dataset.live && location.href === url) {
      const doc = new DOMParser().parseFromString(await r.text(), "text/html"), changed = [];
      for (const part of document.querySelectorAll("[data-fragment]")) {
        const fresh = doc.querySelector('[data-fragment="' + part.dataset.fragment + '"]');
        if (fresh) morph(part, fresh, changed);
      }
      if (seen) announce(changed);
      seen = r.headers.get("ETag") || "";
    }
    body.dataset.asked = 1 + +(body.dataset.asked || 0);
  } catch { /* the next time may go well */ }
  look();
}

// announce says what has changed to readers that do not see it.
function announce(changed) {
  const names = [...new Set(changed)];
  if (names.length) say.textContent = "Changed: " + names.slice(0, 5).join(", ") + (names.length > 5 ? " and " + (names.length - 5) + " more." : ".");
}

document.addEventListener("visibilitychange", look);
addEventListener("pagehide", () => clearTimeout(timer));
addEventListener("pageshow", look);

// ages says again how long ago things were, as the server has said it.
function ages() {
  for (const t of document.querySelectorAll("time[data-ago]")) {
    const s = Math.max(0, Math.floor((Date.now() - Date.parse(t.dateTime)) / 1000));
    const text = s < 120 ? s + " s" : s < 7200 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " days";
    if (t.textContent !== text + " ago") t.textContent = text + " ago";
  }
}
setInterval(ages, 10000);

// Pages that follow their controls.
let visits = 0;

async function visit(url) {
  const mine = ++visits;
  const doc = await load(url).catch(() => null);
  if (mine !== visits) return;
  const main = doc && doc.querySelector("main");
  if (!main) {
    location.assign(url);
    return;
  }
  history.replaceState(null, "", url);
  morph(document.querySelector("main"), main, []);
  if ("live" in doc.body.dataset) body.dataset.live = doc.body.dataset.live; else delete body.dataset.live;
  seen = "";
  document.title = doc.title;
  look();
}

for (const form of document.querySelectorAll("form[data-auto]")) {
  let wait;
  form.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => {
      if (!form.reportValidity()) return;
      const url = new URL(form.action);
      for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
      visit(url.href);
    }, 250);
  });
}

// Keys.
const keys = document.getElementById("keys"), help = document.getElementById("help"), on = document.getElementById("keys-on");
if (help) {
  help.hidden = false;
  help.addEventListener("click", () => keys.showModal());
  on.checked = stored.get("keys") !== "off";
  on.addEventListener("change", () => stored.set("keys", on.checked ? "on" : "off"));
}

function step(by) {
  const rows = [...document.querySelectorAll(rowQuery)];
  if (!rows.length) return;
  const now = rows.findIndex(r => r.contains(document.activeElement));
  const row = rows[now < 0 ? by > 0 ? 0 : rows.length - 1 : Math.min(rows.length - 1, Math.max(0, now + by))];
  let target = row.querySelector("a,button,summary,input");
  if (!target) {
    target = row;
    row.tabIndex = -1;
  }
  target.focus();
  row.scrollIntoView({block: "nearest"});
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.defaultPrevented) return;
  if (!on || !on.checked || keys.open || e.target.closest("input,textarea,select,[contenteditable]")) return;
  const link = document.querySelector('[data-hotkey="' + CSS.escape(e.key) + '"]');
  if (e.key === "/") document.getElementById("q")?.focus();
  else if (e.key === "j") step(1);
  else if (e.key === "k") step(-1);
  else if (e.key === "?") keys.showModal();
  else if (link) link.click();
  else return;
  e.preventDefault();
});
})();
