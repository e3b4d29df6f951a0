"use strict";

// The token comes after the `#` of the URL. It is kept for reloads of this tab only.
if (location.hash.length > 1) {
  sessionStorage.setItem("token", location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
const headers = {
  "Authorization": "Bearer " + (sessionStorage.getItem("token") || ""),
  "Content-Type": "application/json",
};
const byId = (id) => document.getElementById(id);

function report(text, isWarning) {
  byId("status").textContent = text;
  byId("status").className = isWarning ? "warning" : "muted";
}

// Data is inserted as text only: the input of a tool call may contain anything. The service has escaped the characters
// that a browser would not show.
function element(name, text, className) {
  const created = document.createElement(name);
  if (text !== undefined) created.textContent = text;
  if (className) created.className = className;
  return created;
}

function button(text, action) {
  const created = element("button", text);
  created.type = "button";
  created.addEventListener("click", action);
  return created;
}

async function send(path, body) {
  try {
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    if (response.ok) return true;
    report((await response.json()).error, true);
  } catch (error) {
    report("The service cannot be reached: " + error.message, true);
  }
  return false;
}

function pendingItem(approval) {
  const { id, tool, input, cwd, agent, session, requested_at_ms, repeats, moved_from } = approval;
  const item = element("li");
  item.dataset.id = id;
  item.append(element("strong", tool), element("pre", input));
  // The same command does something else in another directory.
  item.append(element("p", "In " + (cwd || "an unknown directory") + (agent ? ", by the subagent " + agent : "")));
  const time = new Date(requested_at_ms).toLocaleString();
  item.append(element("p", "Requested " + time + " by the task " + session, "muted"));
  if (repeats) {
    item.append(element("p", "This call was approved before, and may have run already.", "warning"));
  }
  if (moved_from) {
    item.append(element("p", "This call was requested before, for another directory.", "warning"));
  }
  const message = element("input");
  message.placeholder = "Reason of a denial, which the model reads";
  message.size = 40;
  const decide = (body) => () => send("/approvals/" + id, body());
  item.append(
    button("Allow", decide(() => ({ verdict: "allow" }))), " ",
    button("Deny", decide(() => ({ verdict: "deny", message: message.value || "denied" }))), " ",
    message,
  );
  return item;
}

function taskItem(task) {
  const item = element("li");
  item.append(element("strong", task.state), element("pre", task.prompt));
  if (task.text) item.append(element("p", task.text, task.state === "failed" ? "warning" : ""));
  item.append(element("p", task.session, "muted"));
  return item;
}

function show(snapshot) {
  const list = byId("pending");
  const pending = snapshot.pending || [];
  const ids = new Set(pending.map((approval) => approval.id));
  // Items stay as they are, so that a message that is being written is not lost.
  for (const item of [...list.children]) {
    if (!ids.has(item.dataset.id)) item.remove();
  }
  const shown = new Set([...list.children].map((item) => item.dataset.id));
  for (const approval of pending) {
    if (!shown.has(approval.id)) list.append(pendingItem(approval));
  }
  byId("tasks").replaceChildren(...(snapshot.tasks || []).toReversed().map(taskItem));
  if (snapshot.error) report(snapshot.error, true);
  else report(pending.length === 0 ? "No approval is pending." : pending.length + " pending", false);
}

// `EventSource` cannot send the token in a header.
async function follow() {
  const response = await fetch("/events", { headers });
  if (!response.ok) throw new Error((await response.json()).error);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the connection ended");
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ")) show(JSON.parse(event.slice("data: ".length)));
    }
  }
}

async function run() {
  for (;;) {
    try {
      await follow();
    } catch (error) {
      report("Not connected: " + error.message, true);
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

byId("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await send("/tasks", { prompt: byId("prompt").value })) byId("prompt").value = "";
});
run();
