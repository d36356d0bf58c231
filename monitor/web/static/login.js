// Logs in by the token in the address, which never leaves the browser but in the form.
const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  document.querySelector("form").submit();
}
