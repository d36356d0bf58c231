// Log in with the token in the address. It leaves the browser only in the form.
const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", location.pathname);
  const field = /** @type {HTMLInputElement} */ (document.getElementById("token"));
  field.value = token;
  document.querySelector("form").submit();
}
