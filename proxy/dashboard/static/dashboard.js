// The little that pages do beyond forms and links; each works without it, with one click or one load more.
"use strict";

// A press of a key is a click on the button that names it (data-key), unless a person is writing.
document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, textarea, select, [contenteditable]");
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
