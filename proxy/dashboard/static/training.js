// Two comforts of the training pages. Without them a page reloads, and a data set is pasted.
"use strict";

for (const live of document.querySelectorAll("[data-events]")) {
  const source = new EventSource(live.dataset.events);
  source.onmessage = (event) => { live.innerHTML = event.data; };  // rendered and escaped by the server
  source.addEventListener("end", () => { source.close(); location.reload(); });
}

for (const picker of document.querySelectorAll("[data-fills]")) {
  picker.closest("[hidden]").hidden = false;
  picker.addEventListener("change", async () => {
    if (!picker.files.length) return;
    document.getElementById(picker.dataset.fills).value = await picker.files[0].text();
    const choice = document.querySelector(`input[value="${picker.dataset.checks}"]`);
    if (choice) choice.checked = true;
  });
}
