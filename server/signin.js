// A one-time code comes in the fragment, which browsers send to nobody; it goes
// from there into the form and out of the address bar.
const code = location.hash.slice(1);
const field = document.getElementById("code");
if (field && code) {
  field.value = code;
  history.replaceState(null, "", location.pathname);
}
if (field && field.value) {
  field.closest(".field").hidden = true;
}
