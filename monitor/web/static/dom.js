// Small helpers to make elements. Text is only ever set as text, because a name may contain markup.

/** The element with this id. The page determines its kind. @type {(id: string) => any} */
export const $ = (id) => document.getElementById(id);

export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") element.className = value;
    else if (name === "vars") {
      for (const [key, each] of Object.entries(value)) element.style.setProperty(`--${key}`, each);
    } else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function text(id, value) {
  const element = $(id);
  if (element.textContent !== value) element.textContent = value;
}

export function fill(id, children) {
  $(id).replaceChildren(...children);
}

export const share = (value, of) =>
  `${(100 * Math.min(Math.max(value / of, 0), 1)).toFixed(2)}%`;

// Guides and plateau are for researchers. The choice is stored if the browser allows it.
const WANTED = "researcher";

export function researching() {
  return $("researcher").getAttribute("aria-pressed") === "true";
}

export function rememberResearching(onChange) {
  const button = $("researcher");
  const press = (on) => button.setAttribute("aria-pressed", String(on));
  try {
    press(localStorage.getItem(WANTED) === "yes");
  } catch {
    press(false); // a browser that stores nothing
  }
  button.addEventListener("click", () => {
    press(!researching());
    try {
      localStorage.setItem(WANTED, researching() ? "yes" : "no");
    } catch {
      // the choice lasts until the page is left
    }
    onChange();
  });
}
