"use strict";

// The theme, and choices that are stored in the browser if it allows that.

function themeButton() {
  const root = document.documentElement;
  const ofSystem = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const isDark = () => (root.dataset.theme || ofSystem()) === "dark";
  const button = make("button", { type: "button", id: "theme" });
  const update = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep("theme", root.dataset.theme);
    update();
  });
  update();
  return button;
}

function choiceOf(name) {
  try {
    return localStorage.getItem(`agentv-ci-${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`agentv-ci-${name}`, value);
  } catch {
    // The choice is lost when the page is closed.
  }
}
