// The little that pages do beyond forms and links; each works without it, with one click or one load more.
"use strict";

// A press of a key is a click on the button that names it (data-key), unless a person is writing or wants no keys.
document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (localStorage.getItem("keys") === "off") return;
  if (writing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});

// A choice that says what a page shows (data-sends) needs no press of the button beside it.
document.addEventListener("change", (event) => {
  if (event.target.closest("[data-sends]")) event.target.form.requestSubmit();
});

// Who speaks to a computer, or has a screen reader read, can switch the keys off (data-keys); the browser remembers it.
function offerKeys() {
  for (const box of document.querySelectorAll("[data-keys]")) {
    box.closest("[hidden]")?.removeAttribute("hidden");
    box.checked = localStorage.getItem("keys") !== "off";
    box.onchange = () => localStorage.setItem("keys", box.checked ? "on" : "off");
  }
}
offerKeys();
document.addEventListener("htmx:afterSettle", offerKeys);

// A form that was sent says so until its answer is there, and is not sent twice.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (event.target.ariaBusy === "true") event.preventDefault();
  event.target.ariaBusy = "true";
});
// A page that the browser kept comes back as it was left.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[aria-busy]")) form.ariaBusy = null;
});
