"use strict";

// Runs before the page is drawn: marks that scripts run, and applies the chosen theme.

document.documentElement.classList.replace("no-script", "script");
try {
  const theme = localStorage.getItem("agentv-ci-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the system's theme applies.
}
